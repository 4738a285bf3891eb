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
