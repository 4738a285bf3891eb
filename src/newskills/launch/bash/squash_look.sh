# squash_look FOLDER STEM...: for each file of these images, in the containers' folder or beside it, a line with
# whole or broken, its path, and what its side file says.
squash_look() {
    local folder=$1 stem file state said
    shift
    shopt -s nullglob
    for stem in "$@"; do
        for file in "$folder"/{containers/,}"$stem"{,-????????????}.sqsh; do
            [[ -f $file ]] || continue
            state=broken said=""
            if whole "$file"; then state=whole; fi
            if [[ -r $file.json ]]; then said=$(head -c 4000 -- "$file.json" | tr -d '\t\n'); fi
            printf '%s\t%s\t%s\n' "$state" "$file" "$said"
        done
    done
}
