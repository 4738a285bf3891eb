# set_up: runs the setup once on this node; further processes of this command on it wait for its end.
set_up() {
    local done="$job_folder/$job_command.setup-$HOSTNAME" code
    if [[ ${SLURM_LOCALID:-0} -eq 0 ]]; then
        bash "$job_folder/$job_command.setup.sh"
        code=$?
        echo "$code" >"$done.$$" && mv -f -- "$done.$$" "$done"
    else
        until [[ -e $done ]]; do sleep 0.2; done
        code=$(<"$done")
    fi
    if [[ $code -ne 0 ]]; then
        echo "The setup of '$job_command' ended with exit code $code on $HOSTNAME." >&2
        exit "$code"
    fi
}
