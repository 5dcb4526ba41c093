#!/bin/sh
# Checks the tools that a step needs: need.sh rust profdata cc cxx git curl python redis etcd node mail
#
# Prints the names of missing system packages, and installs them if this user may; otherwise the step ends. Rust is
# never installed: its version is your choice.
set -eu

packages=
# Servers are in folders that are not in a user's PATH.
PATH=$PATH:/usr/sbin:/sbin

# missing PROGRAM PACKAGE...: notes the packages when the program is not there.
missing() {
    program=$1
    shift
    command -v "$program" >/dev/null 2>&1 || packages="$packages $*"
}

need_rust() {
    if ! command -v cargo >/dev/null 2>&1; then
        echo "cargo is missing: install Rust, at least the rust-version in Cargo.toml" >&2
        exit 1
    fi
}

# The parts of Rust that the checks use beside the compiler.
need_lints() {
    need_rust
    for part in fmt:rustfmt clippy:clippy; do
        cargo "${part%:*}" --version >/dev/null 2>&1 && continue
        echo "cargo ${part%:*} is missing: rustup component add ${part#*:}"
        rustup component add "${part#*:}"
    done
}

# The tool that merges profiles: of the compiler in use, because their form is that of its LLVM.
need_profdata() {
    need_rust
    tool=$(rustc --print target-libdir)/../bin/llvm-profdata
    [ ! -x "$tool" ] || return 0
    echo "llvm-profdata is missing: rustup component add llvm-tools"
    if ! command -v rustup >/dev/null 2>&1 || ! rustup component add llvm-tools || [ ! -x "$tool" ]; then
        echo "there is no llvm-profdata for this compiler at $tool: get the component llvm-tools of its version" >&2
        exit 1
    fi
}

install_packages() {
    [ -n "$packages" ] || return 0
    echo "missing system packages:$packages"
    as=
    if [ "$(id -u)" != 0 ]; then as="sudo -n"; fi
    if ! command -v apt-get >/dev/null 2>&1 || ! $as true 2>/dev/null; then
        echo "this user cannot install them: install them, then try again" >&2
        exit 1
    fi
    $as apt-get update -q
    case $packages in
        # Its tests bring a configuration of their own; the machine gets none.
        *postfix*) echo "postfix postfix/main_mailer_type select No configuration" | $as debconf-set-selections ;;
    esac
    # The list is meant to be split into words.
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive $as apt-get install -y -q --no-install-recommends $packages
}

for need in "$@"; do
    case $need in
        rust) need_rust ;;
        lints) need_lints ;;
        profdata) need_profdata ;;
        cc) missing cc gcc libc6-dev ;;
        cxx) missing c++ g++ ;;
        git) missing git git ;;
        curl) missing curl curl ;;
        redis) missing redis-server redis-server ;;
        etcd) missing etcd etcd-server ;;
        mail)
            missing postfix postfix
            missing dovecot dovecot-core
            missing opendkim opendkim
            missing unbound unbound
            missing openssl openssl
            for part in dovecot-imapd:imap dovecot-lmtpd:lmtp; do
                [ -x "/usr/lib/dovecot/${part#*:}" ] || packages="$packages ${part%:*}"
            done
            [ -x /usr/bin/sievec ] || packages="$packages dovecot-sieve"
            ;;
        node)
            missing node nodejs
            missing npm npm
            ;;
        python)
            missing python3 python3 python3-venv
            if command -v python3 >/dev/null 2>&1 && ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
                packages="$packages python3-venv"
            fi
            ;;
        *)
            echo "need.sh: unknown requirement '$need'" >&2
            exit 2
            ;;
    esac
done
install_packages
