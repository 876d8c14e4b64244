# SPDX-License-Identifier: BSD-2-Clause
# bash completion for Viaduct's tools, installed once under the name of each. Options are those that the tool itself
# lists with --help; after an option that takes one of a few words, those.

# Words that may follow an option.
_viaduct_words() {
    case $1:$2 in
        vipperf:-t | vipperf:--test) echo send_lat send_bw write_lat write_bw read_lat read_bw all ;;
        vipperf:-c | vipperf:--completion) echo queue cq wait cq_wait ;;
        vipperf:-b | vipperf:--bytes) echo 8 64 4K 64K 1M 1:4M ;;
        vipcap:-r) return 1 ;;
        *:-r | *:--reliability) echo unreliable delivery reception ;;
        *:-d | *:--device) vipinfo 2>/dev/null | awk '$2 != "NIC" { print $1 }' ;;
        vipkad:--log-level) echo error warn info debug trace ;;
        *) return 1 ;;
    esac
}

_viaduct() {
    local tool=${1##*/} current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words part=
    COMPREPLY=()
    if [[ $current != -* ]] && words=$(_viaduct_words "$tool" "$before"); then
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
        return
    fi
    case $tool:$before in
        vipcap:-r | vipcap:--read | vipcap:-w | vipcap:--write | vipcap:--chart | vipperf:--report | vipkad:--socket)
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            return
            ;;
        *:--pid | vipstat:-p)
            mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$current")
            return
            ;;
    esac
    if [[ $tool == cmpiinfo && $current != -* ]]; then
        [[ $before != --job ]] || mapfile -t COMPREPLY < <(compgen -W "all $(cd /proc && echo [0-9]*)" -- "$current")
        return
    fi
    if [[ $tool == viptrace ]]; then
        if ((COMP_CWORD == 1)) && [[ $current != -* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "attach record report" -- "$current")
            return
        elif [[ ${COMP_WORDS[1]} == attach && $current != -* && $before != -[on] && $before != --[oe]* ]]; then
            mapfile -t COMPREPLY < <(compgen -W "$(cd /proc && echo [0-9]*)" -- "$current")
            return
        elif [[ $current != -* ]]; then
            mapfile -t COMPREPLY < <(compgen -f -- "$current")
            return
        fi
        ((COMP_CWORD == 1)) || part=${COMP_WORDS[1]}
    fi
    if [[ $current == -* ]]; then
        words=$("$1" ${part:+"$part"} --help 2>/dev/null | grep -oE '(^|[ ,])--?[A-Za-z0-9][-A-Za-z0-9]*' | tr -d ' ,' | sort -u)
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
    elif [[ $tool == vipinfo && " ${COMP_WORDS[*]} " != *" --doctor "* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_viaduct_words "$tool" --device)" -- "$current")
    elif [[ $tool == vipinfo ]]; then
        mapfile -t COMPREPLY < <(compgen -A hostname -W "$(_viaduct_words "$tool" --device)" -- "$current")
    else
        mapfile -t COMPREPLY < <(compgen -A hostname -- "$current")
    fi
}

complete -F _viaduct cmpiinfo vipcap vipinfo vipping vipperf vipstat viptrace vipkad
