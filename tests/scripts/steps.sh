# Steps of a longer run, for scripts that read this file with `.`: each step has a title; the end prints how long each took.

step=
begun=$(date +%s)
times=

# run TITLE COMMAND...: runs one step and notes how long it took.
run() {
    step=$1
    shift
    printf '\n==> %s\n' "$step"
    begun=$(date +%s)
    "$@"
    times="$times$(printf '%6d s  %s' "$(($(date +%s) - begun))" "$step")
"
}

# Prints the steps that passed, and the one that failed.
report() {
    code=$?
    printf '\n%s' "$times"
    if [ "$code" = 0 ]; then
        echo "all passed"
    else
        printf '%6d s  failed: %s\n' "$(($(date +%s) - begun))" "$step" >&2
    fi
}
