# ---- From here on every job is the same ----------------------------------------------------------------
# - Clients decide. When all have ended, the servers are stopped, and the exit code is that of the first
#   client that failed, else 0.
# - A server that ends while a client still runs fails the job at once, whatever its own code.
# - TERM, INT and USR1 (the time limit is near) are passed on to the clients as TERM, so that they save what
#   they have; then the servers are stopped. Exit code: 143, 130, or 75 for USR1 (go on later from there). A client
#   that ends with 75 by itself means the same. URG means a TERM that this script may have missed: bash ignores a signal
#   for the instant in which its trap is set.
# - Each command leaves its exit code in <command>.exit (128 + n after signal n), and the job leaves
#   "<code> completed|failed|cancelled|time <why>" in job.exit.

job_server_grace=10  # seconds between TERM and KILL for servers, and for clients without their server
job_client_grace=60  # seconds that interrupted clients have to save their work

# Names begin with job_ so that they change no variable that the user's programs get (a `local` would, too).
job_names=()           # all commands, in the order in which they were started
declare -A role_of     # client or server, by name
declare -A pid_of      # of those that still run, by name
declare -A deadline_of # when those that were told to stop will be killed, by name
job_clients=0          # how many were started
job_signal=""          # the signal that interrupted the job
job_starting=""        # "yes" while a command is started that pid_of does not know yet
job_early=""           # the signal that came meanwhile
job_told=""            # "yes" once any of these signals has come
job_broken=""          # the server that ended early
job_code=0             # the job's exit code so far
job_why=""             # in words
job_alarms=()          # background processes that wait for the end of a grace period
job_ended=""           # the command that has just ended
ended_code=0           # its exit code

say() { printf '%(%F %T)T %s\n' -1 "$*"; }

# mark FILE TEXT: whoever looks, on any node, sees all of the text or no file.
mark() { printf '%s\n' "$2" >"$job_folder/.$1.$$" && mv -f -- "$job_folder/.$1.$$" "$job_folder/$1"; }

# start ROLE NAME WORD...: runs the words in the background.
start() {
    local job_role=$1 job_name=$2
    shift 2
    job_starting=yes # before the look at job_signal: what comes after that look is not overlooked
    if [[ -z $job_signal ]]; then
        job_names+=("$job_name")
        role_of[$job_name]=$job_role
        [[ $job_role == server ]] || job_clients=$((job_clients + 1))
        say "$job_role '$job_name' starts; its log is $job_logs/$job_name.log"
        "$@" </dev/null >>"$job_logs/$job_name.log" 2>&1 {job_never}<&- &
        pid_of[$job_name]=$!
        await_child "$!" "$job_never"
    fi
    job_starting=""
    [[ -z $job_early ]] || interrupted "$job_early"
}

# running ROLE: prints the names of those that run.
running() {
    local name
    for name in "${job_names[@]}"; do
        if [[ ${role_of[$name]} == "$1" && -n ${pid_of[$name]:-} ]]; then printf "'%s' " "$name"; fi
    done
}

# send SIGNAL NAME: if that command still runs.
send() {
    local pid=${pid_of[$2]:-}
    [[ -z $pid ]] || send_signal "$1" "$2" "$pid"
}

# stop ROLE SECONDS: TERM now, KILL after so many seconds to those that are still there.
stop() {
    local name here=""
    for name in "${job_names[@]}"; do
        [[ ${role_of[$name]} == "$1" && -n ${pid_of[$name]:-} ]] || continue
        here=yes
        deadline_of[$name]=${deadline_of[$name]:-$((SECONDS + $2))}
        send TERM "$name"
    done
    if [[ -n $here ]]; then
        {
            read -r -t "$2" -u "$job_never"
            while kill -s ALRM "$$"; do read -r -t 1 -u "$job_never"; done # SECONDS may lag behind
        } 2>/dev/null &
        job_alarms+=("$!")
    fi
}

overdue() {
    local name
    for name in "${!deadline_of[@]}"; do
        [[ -n ${pid_of[$name]:-} && ${deadline_of[$name]} -le $SECONDS ]] || continue
        say "${role_of[$name]} '$name' did not stop in time and is killed"
        deadline_of[$name]=$((SECONDS + job_server_grace)) # again then, if it is still there
        send KILL "$name"
    done
}

# The second signal reaches the clients again: `ns` then gives up requests in flight instead of waiting for them.
interrupted() {
    job_told=yes
    if [[ -n $job_starting ]]; then # there is nobody yet whom the signal could be passed on to
        job_early=${job_early:-$1}
        return
    fi
    job_early=""
    say "received SIG$1: stopping"
    if [[ -z $job_broken && ($job_clients -eq 0 || -n $(running client)) ]]; then job_signal=${job_signal:-$1}; fi
    stop client "$job_client_grace"
    [[ -n $(running client) ]] || stop server "$job_server_grace"
}

# Waits until a command has ended: sets `job_ended`, empty when a signal came instead, and `ended_code`.
# `wait -n` overlooks what ended while bash waited for something else, hence the look at each one first.
next_end() {
    local name pid
    job_ended=""
    for name in "${job_names[@]}"; do
        pid=${pid_of[$name]:-}
        if [[ -n $pid ]] && ! kill -0 "$pid" 2>/dev/null; then
            ended_code=143 job_ended=$name
            # A signal just when bash learns of an end makes it forget that end: it would wait for ever.
            [[ $'\n'$(jobs -pr)$'\n' == *$'\n'$pid$'\n'* ]] || { wait "$pid" 2>/dev/null; ended_code=$?; }
            return
        fi
    done
    wait -n -p pid "${pid_of[@]}" 2>/dev/null
    ended_code=$?
    for name in "${job_names[@]}"; do
        if [[ -n ${pid:-} && ${pid_of[$name]:-} == "$pid" ]]; then job_ended=$name; fi
    done
}

# await_group NAME: what a command that was told to stop has started may still save its work when the command has ended.
await_group() {
    while [[ $SECONDS -lt ${deadline_of[$1]:-0} ]] && kill -0 -- "-${pid_of[$1]}" 2>/dev/null; do sleep 0.1; done
}

fail() {
    [[ $job_code -ne 0 || -n $job_signal ]] || { job_code=$1 job_why=$2; }
    say "FAILED: $2"
}

client_ended() {
    [[ $ended_code -eq 0 || -n ${deadline_of[$job_ended]:-} ]] ||
        fail "$ended_code" "client '$job_ended' ended with exit code $ended_code"
    [[ -n $(running client) ]] || stop server "$job_server_grace"
}

server_ended() {
    local waiting
    waiting=$(running client)
    [[ -z $job_signal && -z ${deadline_of[$job_ended]:-} ]] || return 0
    job_broken=$job_ended
    if [[ -n $waiting ]]; then
        fail "$((ended_code == 0 ? 1 : ended_code))" \
            "server '$job_ended' ended with exit code $ended_code while client ${waiting% } still ran"
    elif [[ $ended_code -ne 0 ]]; then
        fail "$ended_code" "server '$job_ended' ended with exit code $ended_code"
    fi
    if [[ $ended_code -ne 0 || -n $waiting ]]; then
        say "the last lines of $job_logs/$job_ended.log:"
        tail -c 20000 -- "$job_logs/$job_ended.log" | tail -n 20 |
            tr -d '\000-\010\013\014\016-\037' | sed 's/^/    | /'
    fi
    stop client "$job_server_grace"
    stop server "$job_server_grace"
}

# Writes job.exit and ends. Also reached when this script itself fails: nothing must outlive it.
finish() {
    local code=$job_code state=completed name
    trap '' TERM INT USR1 URG
    trap - EXIT
    for name in "${job_names[@]}"; do send KILL "$name"; done
    [[ ${#job_alarms[@]} -eq 0 ]] || kill "${job_alarms[@]}" 2>/dev/null
    case $job_signal in
        USR1) code=75 state=time job_why="the time limit is near" ;;
        TERM) code=143 state=cancelled job_why="received SIGTERM" ;;
        INT) code=130 state=cancelled job_why="received SIGINT" ;;
        *) case $code in 0) ;; 75) state=time ;; *) state=failed ;; esac ;;
    esac
    if [[ $code -ne 0 ]] && declare -F make_room >/dev/null; then make_room; fi # of the place, where it has one
    mark job.exit "$code $state${job_why:+ $job_why}"
    say "job $state with exit code $code${job_why:+: $job_why}"
    if [[ $state == time ]]; then out_of_time; fi
    exit "$code"
}

main() {
    exec {job_never}<> <(:) # never has anything to read: a sleep without a process
    trap 'interrupted TERM' TERM
    trap '[[ -n $job_told ]] || interrupted TERM' URG
    trap 'interrupted INT' INT
    trap 'interrupted USR1' USR1
    trap overdue ALRM
    trap 'job_code=70 job_why="job.sh itself failed"; finish' EXIT
    mkdir -p -- "$job_folder/ports" "$job_logs" || exit 1
    # What an earlier life of this job (requeued, or run again) has left behind would mislead everybody.
    rm -rf -- "$job_folder"/ports/* "$job_folder"/ports/.taken "$job_folder"/*.{exit,step,setup-*}
    say "job starts on $HOSTNAME${SLURM_RESTART_COUNT:+ (restart $SLURM_RESTART_COUNT)}"
    mark job.started "$HOSTNAME $$"
    start_all
    while [[ ${#pid_of[@]} -gt 0 ]]; do
        next_end
        [[ -n $job_ended ]] || continue
        await_group "$job_ended"
        unset "pid_of[$job_ended]"
        mark "$job_ended.exit" "$ended_code"
        say "${role_of[$job_ended]} '$job_ended' ended with exit code $ended_code"
        "${role_of[$job_ended]}_ended"
    done
    finish
}

main
