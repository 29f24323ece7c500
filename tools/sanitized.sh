#!/bin/sh
# Runs a command with the sanitized build in the given folder: tools/sanitized.sh build/sanitize/lib COMMAND
#
# The interpreter is not sanitized, so the libraries of the sanitizers must be preloaded. libstdc++ too, because
# AddressSanitizer looks up its exception functions only once, at the start.
set -eu
lib=$1
shift

compiler=${CC:-gcc}
preload=
for name in libasan.so libubsan.so libstdc++.so.6; do
    path=$("$compiler" -print-file-name=$name)
    case $path in
        /*) preload="$preload${preload:+:}$path" ;;
        *) [ $name = libstdc++.so.6 ] || { echo "sanitize: $compiler has no $name" >&2; exit 1; } ;;
    esac
done

export PYTHONPATH="$lib" PENSTOCK_EXPECT=compiled PYTHONMALLOC=malloc
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1 UBSAN_OPTIONS=print_stacktrace=1
export PENSTOCK_SANITIZED=1
LD_PRELOAD="$preload" exec "$@"
