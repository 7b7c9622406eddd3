# Completion of homing in fish. It asks `homing` whenever TAB is pressed, and evaluates nothing of what it answers.
function __homing_complete
    set -l lines (command homing __complete fish (commandline -opc) (commandline -ct) 2>/dev/null </dev/null)
    set -q lines[1]; or return
    set -l how $lines[1]
    set -e lines[1]
    switch $how
        case files
            __fish_complete_path (commandline -ct)
        case dirs
            __fish_complete_directories (commandline -ct) ''
        case '*'
            set -q lines[1]; and printf '%s\n' $lines
    end
end
complete -c homing -e
complete -c homing -f -k -a '(__homing_complete)'
