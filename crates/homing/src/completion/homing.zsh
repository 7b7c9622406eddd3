#compdef homing
# Completion of homing in zsh. It asks `homing` whenever TAB is pressed, and evaluates nothing of what it answers.
_homing() {
    local how line
    local -a lines values shown
    lines=("${(@f)$(command homing __complete zsh "${COLUMNS:-80}" "${(@Q)words[1,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null </dev/null)}")
    how=$lines[1]
    shift lines
    case $how in
        files|dirs)
            [[ $PREFIX == -*=* ]] && compset -P '*='
            if [[ $how == dirs ]]; then _files -/; else _files; fi
            return
            ;;
    esac
    for line in "${lines[@]}"; do
        values+=("${line%%$'\t'*}")
        shown+=("${line#*$'\t'}")
    done
    (( $#values )) && compadd -V homing -l -d shown -a values
}
if [[ ${funcstack[1]} == _homing ]]; then _homing "$@"; else compdef _homing homing; fi
