#!/bin/bash
# Command 'judge-server', a server of job 'judge': what runs inside its step.
# Their values come with the environment only: HF_TOKEN.
set -u

job_folder='/jobs/exp/judge'\''s job'
job_logs=/logs/judge
job_command=judge-server

export GREETING='it'\''s fine'
export HF_HOME=/hf

echo "$SLURM_JOB_ID.$SLURM_STEP_ID" >"$job_folder/$job_command.step"

export VLLM_LOGGING='it'\''s $HOME'

cd -- /nemo_run/code || exit 1

# set_up: runs the setup once on this node; further processes of this command on it wait for its end.
set_up() {
    local job_done="$job_folder/$job_command.setup-$HOSTNAME" job_code
    if [[ ${SLURM_LOCALID:-0} -eq 0 ]]; then
        bash "$job_folder/$job_command.setup.sh"
        job_code=$?
        echo "$job_code" >"$job_done.$$" && mv -f -- "$job_done.$$" "$job_done"
    else
        until [[ -e $job_done ]]; do sleep 0.2; done
        job_code=$(<"$job_done")
    fi
    if [[ $job_code -ne 0 ]]; then
        echo "The setup of '$job_command' ended with exit code $job_code on $HOSTNAME." >&2
        exit "$job_code"
    fi
}

set_up

# is_free PORT: nothing listens there, on any address of this node.
is_free() {
    local hex table
    if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then return 1; fi
    printf -v hex '%04X' "$1"
    for table in /proc/net/tcp /proc/net/tcp6; do
        [[ -r $table ]] || continue
        # local address:PORT, remote address 0, state 0A (listening)
        if [[ $(<"$table") =~ :$hex\ 0+:0000\ 0A ]]; then return 1; fi
    done
}

# claim PORT: true for one process only, among the commands of this job (mkdir) and, where they share /tmp, all of
# this user's on the node (flock): the server inherits that lock by exec, and the kernel frees it when it has ended.
claim() {
    local locks=/tmp/newskills-ports-$UID lock
    mkdir -p -- "$job_folder/ports/.taken"
    mkdir -- "$job_folder/ports/.taken/$job_host:$1" 2>/dev/null || return 1
    command -v flock >/dev/null || return 0
    (umask 077 && mkdir -p -- "$locks") 2>/dev/null
    [[ -d $locks && -O $locks && ! -L $locks ]] || return 0
    exec {lock}>"$locks/${job_host//\//_}-$1" || return 0
    flock -n "$lock" && return 0
    exec {lock}>&-
    return 1
}

# free_port: sets `job_free`: a port that is free here, below those that the kernel hands out itself.
free_port() {
    local try
    for ((try = 0; try < 1000; try++)); do
        job_free=$((20000 + RANDOM % 12000))
        if is_free "$job_free" && claim "$job_free"; then return; fi
    done
    echo "No free port found on $HOSTNAME between 20000 and 32000." >&2
    exit 1
}

# choose_port PORT HOST [meet]: sets `job_host`, `job_port` (0: a free one) and, to meet, `job_meeting` (another free
# one), and tells the other commands by ports/NAME.
choose_port() {
    local told new=$job_folder/ports/.$job_command.$$
    job_host=$2 job_port=$1 job_meeting=""
    if [[ $job_port -eq 0 ]]; then
        free_port
        job_port=$job_free
    elif ! is_free "$job_port" || ! claim "$job_port"; then
        echo "Port $job_port of $HOSTNAME is in use: '$job_command' cannot listen there." \
            "Choose another one, or 0 for any." >&2
        exit 1
    fi
    told="$job_host $job_port"
    if [[ ${3:-} == meet ]]; then
        free_port
        job_meeting=$job_free
        told+=$'\n'$job_meeting
    fi
    printf '%s\n' "$told" >"$new" && mv -f -- "$new" "$job_folder/ports/$job_command"
}

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

# The first process chooses for all of them.
if [[ ${SLURM_PROCID:-0} -eq 0 ]]; then choose_port 0 "$SLURMD_NODENAME" meet; else await judge-server 1800; fi
ref_judge_server_host=$job_host
ref_judge_server_port=$job_port
ref_judge_server_address="http://$job_host:$job_port"
ref_judge_server_meeting="$job_host:$job_meeting"
ref_judge_server_meeting_port=$job_meeting

ref_judge_server_node="$NODE_0"

export MASTER_ADDR="$ref_judge_server_node"
export MEETING="$ref_judge_server_meeting"

job_argv=(
    vllm
    serve
    '/models/a b'
    --port="$ref_judge_server_port"
)
exec -- "${job_argv[@]}"
