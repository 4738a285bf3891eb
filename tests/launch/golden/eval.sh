#!/bin/bash
# Command 'eval', a client of job 'judge': what runs inside its step.
set -u

job_folder='/jobs/exp/judge'\''s job'
job_logs=/logs/judge
job_command=eval

export GREETING='it'\''s fine'
export HF_HOME=/hf

echo "$SLURM_JOB_ID.$SLURM_STEP_ID" >"$job_folder/$job_command.step"

cd -- /nemo_run/code || exit 1

# answers HOST PORT PATH STATUS: an HTTP GET gives such a status. No curl needed; a node that drops packets costs
# 5 s, not minutes.
answers() {
    timeout 5 bash -c '
        exec 3<>"/dev/tcp/$1/$2" || exit 1
        printf "GET %s HTTP/1.1\r\nHost: %s:%s\r\nConnection: close\r\n\r\n" "$3" "$1" "$2" >&3
        IFS= read -r status <&3
        read -r -t 0.5 -N 65536 rest <&3 # a server whose answer nobody reads complains in its log
        [[ $status == HTTP/1.?" "$4* ]]
    ' answers "$@" 2>/dev/null
}

# give_up NAME WORDS: says so, with the end of that command's log.
give_up() {
    {
        echo "$2 The last lines of $job_logs/$1.log:"
        tail -c 20000 -- "$job_logs/$1.log" | tail -n 20 | tr -d '\000-\010\013\014\016-\037' | sed 's/^/    | /'
    } >&2
    exit 1
}

# await NAME SECONDS [PATH STATUS [OFFSET]]: waits until NAME has a port and, if there is a PATH, answers there with a
# STATUS (a pattern), at the port OFFSET above; sets `job_host`, `job_port` and, where it has one, `job_meeting`. Ends the
# command when NAME has ended or the time is up.
await() {
    local began=$SECONDS said=$SECONDS what
    job_host="" job_port="" job_meeting=""
    while true; do
        : "$job_folder"/ports/* # opening the folder makes NFS look for new files now
        what="a port of '$1'"
        if [[ -z $job_port && -e $job_folder/ports/$1 ]]; then
            { read -r job_host job_port && read -r job_meeting; } <"$job_folder/ports/$1"
        fi
        if [[ -n $job_port ]]; then
            [[ -n ${3:-} ]] || return 0
            what="http://$job_host:$((job_port + ${5:-0}))$3 of '$1'"
            if answers "$job_host" "$((job_port + ${5:-0}))" "$3" "$4"; then return 0; fi
        fi
        if [[ -e $job_folder/$1.exit ]]; then
            give_up "$1" "'$1' ended with exit code $(<"$job_folder/$1.exit") before it was ready for '$job_command'."
        fi
        if ((SECONDS - began >= $2)); then
            give_up "$1" "'$job_command' waited $2 s for $what in vain."
        fi
        if ((SECONDS - said >= 30)); then
            said=$SECONDS
            echo "'$job_command' waits for $what: $((SECONDS - began)) s of at most $2 s. Its log: $job_logs/$1.log"
        fi
        sleep 0.2
    done
}

await judge-server 600 /health 200
ref_judge_server_host=$job_host
ref_judge_server_port=$job_port
ref_judge_server_address="http://$job_host:$job_port"

await sandbox 1800
ref_sandbox_host=$job_host
ref_sandbox_port=$job_port
ref_sandbox_address="http://$job_host:$job_port"

export SANDBOX="$ref_sandbox_host"

job_argv=(
    python
    -m
    newskills.run
    ++server.base_url="$ref_judge_server_address"/v1
    '++question=What'\''s
$up?'
    ''
)
exec -- "${job_argv[@]}"
