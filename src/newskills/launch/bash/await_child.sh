# await_child PID FD: a new child of bash loses signals until it has dropped the script's traps; then it closes FD, which
# it must not have. (`read -t` with so short a time may leave bash 5.2 with all signals blocked on a busy machine.)
await_child() { while [[ /proc/$1/fd/$2 -ef /dev/fd/$2 ]]; do sleep 0.01; done; }
