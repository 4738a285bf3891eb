# Runs where jobs are submitted. Set above: squash_folder, squash_name, squash_uri, squash_side, squash_cache,
# squash_token (unlike any other), squash_force (yes or empty), squash_silence (seconds), squash_node (bash),
# squash_srun (words). It ends when its stdin does, and takes the import with it.
#
# The lock keeps two imports of one image from doing the same work. Nothing wrong comes of it being lost: each import
# writes to a name of its own, and only a whole image gets the final name.
trap '' PIPE
exec {squash_talk}<&0
final=$squash_folder/$squash_name
lock=$squash_folder/.$squash_name.lock
new=$final.$squash_token.tmp
probe=$squash_folder/.$squash_name.$squash_token.probe

mkdir -p -- "$squash_folder" || exit 1

print_of_final() { stat -Lc %i:%Y:%s -- "$final" 2>/dev/null; }
before=$(print_of_final)

# there: the image can be taken as it is; where a new one is wanted: somebody else has made one meanwhile.
there() {
    [[ -z $squash_force || $(print_of_final) != "$before" ]] || return 1
    whole "$final"
}

# abandoned: its owner has not touched the lock for too long, by the clock of the file system that it lies on.
abandoned() {
    local now seen
    touch -- "$probe" 2>/dev/null && now=$(stat -c %Y -- "$probe") || return 1
    seen=$(stat -c %Y -- "$lock/owner" 2>/dev/null || stat -c %Y -- "$lock" 2>/dev/null) || return 1
    ((now - seen > squash_silence))
}

# acquire: 0: the lock is ours; 1: it cannot be had, and need not; 2: the image is there.
acquire() {
    local said="" owner
    until mkdir -- "$lock" 2>/dev/null; do
        if [[ ! -w $squash_folder ]]; then
            echo "$(id -un) may not write into $squash_folder" >&2
            exit 1
        fi
        owner=$(cat -- "$lock/owner" 2>/dev/null)
        if abandoned; then
            echo "the import by ${owner:-somebody} has shown no life for more than $squash_silence s: taking over"
            if mv -T -- "$lock" "$lock.$squash_token" 2>/dev/null; then
                rm -rf -- "$lock.$squash_token"
                continue
            fi
            [[ ! -d $lock ]] || return 1 # in a folder where only its owner may remove it
        elif [[ -z $said && -n $owner ]]; then
            said=yes
            echo "waiting for the import by $owner"
        fi
        read -r -t 1 -u "$squash_talk" _
        [[ $? -gt 128 ]] || exit 1 # nobody listens any more
        if there; then return 2; fi
    done
    echo "$(id -un)@$(hostname) since $(date '+%F %T')" >"$lock/owner"
}

clean_up() {
    [[ ${#helpers[@]} -eq 0 ]] || kill "${helpers[@]}" 2>/dev/null
    rm -f -- "$probe" "$new" "$new.json"
    [[ -z $owned ]] || rm -rf -- "$lock"
}

if [[ -e $final && ! -r $final ]]; then
    echo "$final belongs to $(stat -c %U -- "$final"), and $(id -un) may not read it" >&2
    exit 1
fi
helpers=() owned=""
trap clean_up EXIT
trap 'exit 143' TERM INT HUP

if there; then
    echo "found $final"
    exit 0
fi
acquire
case $? in
    0) owned=yes ;;
    2)
        echo "found $final"
        exit 0
        ;;
esac
if there; then # between the look before and the lock
    echo "found $final"
    exit 0
fi
# What imports that were killed have left behind.
find "$squash_folder" -maxdepth 1 -type f -name "$squash_name.*.tmp*" -mmin +240 -delete 2>/dev/null

srun "${squash_srun[@]}" bash -c "$squash_node" bash "$new" "$final" "$squash_uri" "$squash_side" "$squash_cache" \
    </dev/null &
import=$!
if [[ -n $owned ]]; then
    beat=$((squash_silence < 80 ? (squash_silence < 8 ? 1 : squash_silence / 8) : 10))
    while kill -0 "$$" 2>/dev/null; do
        touch -c -- "$lock/owner" 2>/dev/null
        sleep "$beat"
    done </dev/null >/dev/null 2>&1 &
    helpers+=("$!")
fi
{ IFS= read -r -d '' _; kill -TERM "$import"; } <&"$squash_talk" >/dev/null 2>&1 &
helpers+=("$!")
wait "$import"
exit $?
