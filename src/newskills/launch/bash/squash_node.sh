# Runs on a compute node: NEW FINAL URI SIDE CACHE. NEW is a name that nobody else has; FINAL appears whole or not at all.
new=$1 final=$2 uri=$3 side=$4 cache=$5
trap 'rm -f -- "$new" "$new.json"' EXIT
trap 'exit 143' TERM INT HUP

# The site's own folders of enroot need not be writable for everybody, or large enough.
if mkdir -p -- "$cache"/{cache,data,run} 2>/dev/null; then
    export ENROOT_CACHE_PATH=${ENROOT_CACHE_PATH:-$cache/cache} ENROOT_DATA_PATH=${ENROOT_DATA_PATH:-$cache/data}
    export ENROOT_RUNTIME_PATH=${ENROOT_RUNTIME_PATH:-$cache/run}
fi

echo "enroot import of $uri on $(hostname)"
enroot import --output "$new" "$uri" </dev/null &
wait $!
code=$?
if [[ $code -ne 0 ]]; then
    echo "enroot import ended with exit code $code" >&2
    exit "$code"
fi
if ! whole "$new"; then
    echo "enroot import said that all went well, but what it wrote ($(stat -c %s -- "$new" 2>/dev/null || echo no) bytes)" \
        "is no whole squashfs image" >&2
    exit 65
fi
sync -- "$new" 2>/dev/null
printf '%s, "bytes": %s, "imported": "%s", "by": "%s"}\n' "$side" "$(stat -c %s -- "$new")" \
    "$(date -u +%FT%TZ)" "$(id -un)@$(hostname)" >"$new.json" || exit 1

# Who has the old image open keeps it, also over NFS: its file still has a name.
if [[ -e $final ]]; then ln -f -- "$final" "$final.previous" 2>/dev/null; fi
mv -f -- "$new" "$final" && mv -f -- "$new.json" "$final.json" || exit 1
echo "imported as $final"
