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
