# Arguments: the experiment's folder, seconds to wait for squeue, names of jobs. Prints `name handle` of those that Slurm
# has taken: as job.handle says, else what the queue shows in the job's folder, or in that of an array with that job.
cd -- "$1" 2>/dev/null || exit 0
here=$(pwd -P) seconds=$2 left=()
shift 2
declare -A chain_of
for name; do
    if [[ -e $name/job.handle ]] && read -r handle <"$name/job.handle"; then echo "$name $handle"; else left+=("$name"); fi
done
[[ ${#left[@]} -gt 0 ]] || exit 0
queue=$(timeout --signal=KILL "$seconds" squeue --me --noheader --states=all --format='%i|%Z') || exit
while IFS='|' read -r id where; do
    id=${id%%[_+]*}
    case " ${chain_of[$where]:-} " in *" $id "*) ;; *) chain_of[$where]+=" $id" ;; esac
done < <(grep -F -- "|$here/" <<<"$queue" | sort -n)
for array in .arrays/*/; do
    array=${array%/}
    [[ -n ${chain_of[$here/$array]:-} ]] || continue
    source <(sed -n '/^jobs=($/,/^)$/p' "$array/array.sh")
    for index in "${!jobs[@]}"; do
        for id in ${chain_of[$here/$array]}; do chain_of[$here/${jobs[$index]}]+=" ${id}_$index"; done
    done
done
for name in "${left[@]}"; do
    chain=(${chain_of[$here/$name]:-})
    if [[ ${#chain[@]} -gt 0 ]]; then (IFS=: && echo "$name ${chain[*]}"); fi
done
exit 0
