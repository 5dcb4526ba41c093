# Steps of a longer run, to be read by a script with `.`: each has a title and takes its time, which is told at the end.

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

# Tells what passed, and the step that failed.
tell() {
    code=$?
    printf '\n%s' "$times"
    if [ "$code" = 0 ]; then
        echo "all passed"
    else
        printf '%6d s  failed: %s\n' "$(($(date +%s) - begun))" "$step" >&2
    fi
}
