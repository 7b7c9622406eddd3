# Completion of homing in bash. It asks `homing` whenever TAB is pressed, and evaluates nothing of what it answers.
_homing() {
    local how='' line
    COMPREPLY=()
    {
        IFS= read -r how
        while IFS= read -r line; do COMPREPLY+=("$line"); done
    } < <(command homing __complete bash "$COMP_TYPE" "${COLUMNS:-80}" "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null </dev/null)
    case $how in
        files) compopt -o default 2>/dev/null ;;
        dirs) compopt -o dirnames 2>/dev/null ;;
    esac
}
complete -o nosort -F _homing homing 2>/dev/null || complete -F _homing homing
