# keep_only NAME...: removes all other variables that programs would get.
keep_only() {
    local name
    for name in $(compgen -e); do
        if [[ " $* " != *" $name "* ]]; then unset "$name" 2>/dev/null; fi
    done
}

