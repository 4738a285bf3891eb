# Runs where jobs are submitted. Set above: root (the experiment's folder), controller_trouble (a pattern of what Slurm's
# commands say when the controller is slow or away), sbatch_seconds, squeue_seconds and looks (pauses before each look
# for a job whose submission nobody has confirmed, in seconds).

# forget FOLDER...: handles of an earlier submission into the same folders; its ids are not taken for ours.
forget() {
    local folder handle old=()
    for folder; do
        [[ ! -e $folder/job.withdrawn ]] || old+=("$folder/job.withdrawn")
        [[ -e $folder/job.handle ]] || continue
        read -r handle <"$folder/job.handle" && known+=(${handle//:/ })
        old+=("$folder/job.handle")
    done
    [[ ${#old[@]} -eq 0 ]] || rm -f -- "${old[@]}"
}

# queue OPTION...: lines `id|folder` of this user's jobs.
queue() { timeout --signal=KILL "$squeue_seconds" squeue --me --noheader --format='%i|%Z' "$@" 2>/dev/null; }

# is_known ID
is_known() { [[ " ${known[*]%%[_+]*} " == *" $1 "* ]]; }

# look_up: sets `id` to the job that was taken in this folder although sbatch did not say so. A controller that is slow
# may take it after it has answered other questions, hence several looks.
look_up() {
    local pause one where here seen answers=0
    here=$(pwd -P)
    for pause in $looks; do
        sleep "$pause"
        seen=$(queue --states=all) || continue
        while IFS='|' read -r one where; do
            one=${one%%[_+]*}
            if [[ $where == "$here" ]] && ! is_known "$one"; then
                id=$one
                return 0
            fi
        done < <(sort -n <<<"$seen")
        answers=$((answers + 1))
        [[ $answers -lt 3 ]] || return 1
    done
    return 1
}

# send NEEDS WORD...: submits, and sets `id`. What the controller is too slow to confirm is looked for; what it has not
# taken is submitted again.
send() {
    local needs=$1 said code try
    local printed=$'\n([0-9]+)(;[^\n]*)?\n'
    shift
    for try in 1 2 3; do
        said=$(timeout --signal=KILL "$sbatch_seconds" sbatch --parsable --export=ALL \
            ${needs:+--dependency="$needs" --kill-on-invalid-dep=yes} "$@" </dev/null 2>&1)
        code=$?
        if [[ $'\n'$said$'\n' =~ $printed ]]; then
            id=${BASH_REMATCH[1]}
            known+=("$id") submitted+=("$id")
            return
        fi
        if [[ $code -ne 0 && $code -ne 137 && ! $said =~ $controller_trouble ]]; then
            printf '%s\n' "$said" >&2
            give_up
        fi
        if [[ $said == *"temporarily unable to accept"* ]]; then # it has nothing, and says so again and again
            printf '%s\nthe controller took no more jobs for %s s (MaxJobCount)\n' "$said" "$sbatch_seconds" >&2
            give_up
        fi
        troubled=yes
        if look_up; then
            known+=("$id") submitted+=("$id")
            return
        fi
    done
    [[ -n $said ]] || said="no answer within $sbatch_seconds s"
    printf '%s\nsbatch was tried %s times; no job of %s is in the queue\n' "$said" "$try" "$PWD" >&2
    give_up
}

# note NUMBER CHAIN FOLDER LOGS: sets handle_NUMBER; job.handle keeps it, and where the logs are.
note() {
    printf '%s\n' "$2" "$4" >"$3/job.handle" || give_up
    [[ ! -e $3/job.withdrawn ]] || give_up
    printf -v "handle_$1" %s "$2"
    echo "=$1 $2" 2>/dev/null || give_up # nobody listens any more
}

# send_chain COPIES NEEDS WORD...: submits a job and its copies; sets `chain` to their ids.
send_chain() {
    local copy first=$2 needs=$2 copies=$1
    shift 2
    chain=""
    for ((copy = 0; copy <= copies; copy++)); do
        export NEWSKILLS_COPY=$copy
        send "$needs" "$@"
        chain=${chain:+$chain:}$id
        needs=${first:+$first,}afternotok:$chain
    done
}

# submit NUMBER COPIES NEEDS FOLDER LOGS
submit() {
    local chain
    cd -- "$4" || give_up
    send_chain "$2" "$3" job.sh
    note "$1" "$chain" "$4" "$5"
}

# array NUMBER COUNT COPIES NEEDS: submits tasks 0 to COUNT - 1; sets chain_NUMBER.
array() {
    local chain
    cd -- "$root/.arrays/$1" || give_up
    send_chain "$3" "$4" "--array=0-$(($2 - 1))" array.sh
    printf -v "chain_$1" %s "$chain"
    updates=""
}

# task NUMBER INDEX ARRAY FOLDER LOGS [NEEDS]: a job of that array. Where NEEDS is given the array was submitted with
# those of all its tasks; it and the copies are told what this one has to wait for.
task() {
    local chain=chain_$3 ids before="" one
    chain=${!chain}
    ids=(${chain//:/ })
    note "$1" "${chain//:/_$2:}_$2" "$4" "$5"
    for one in "${ids[@]}"; do
        if [[ -n $before || $# -gt 6 ]]; then
            updates+="update jobid=${one}_$2 dependency=${6:-}${before:+${6:+,}afternotok:$before}"$'\n'
        fi
        before=${before:+$before:}${one}_$2
    done
}

# narrow: what task has noted. A task that is not told waits longer than it must, no more; one that has begun or ended
# meanwhile has no dependencies to change.
narrow() {
    local try said
    [[ -n $updates ]] || return 0
    for try in 1 2 3; do
        said=$(timeout --signal=KILL "$sbatch_seconds" scontrol <<<"$updates" 2>&1)
        [[ $? -eq 137 || $said =~ $controller_trouble ]] || return 0
        sleep "$try"
    done
}

# strays: cancels what was taken twice because the controller confirmed neither.
strays() {
    local one where
    [[ -n $troubled ]] || return 0
    cd -- "$root" || return 0
    root=$(pwd -P)
    while IFS='|' read -r one where; do
        one=${one%%[_+]*}
        if [[ $where == "$root"/* && " ${submitted[*]} " != *" $one "* ]]; then scancel --quiet "$one"; fi
    done < <(queue)
}

# give_up: all or none.
give_up() {
    [[ ${#submitted[@]} -eq 0 ]] || scancel --quiet "${submitted[@]}"
    submitted=()
    strays
    exit 1
}

submitted=() # ids of this submission
known=()     # the same, and those of earlier ones into these folders
troubled=""  # "yes" once a submission was not confirmed
updates=""   # lines for scontrol
