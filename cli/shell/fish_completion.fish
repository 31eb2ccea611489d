# SPDX-License-Identifier: MIT
# Completion of dtool in fish: `dtool completion fish | source` in ~/.config/fish/config.fish. dtool itself says what may come next.
function __dtool_complete
    set -l words (commandline -opc)
    set -l typed (commandline -ct)
    for line in ($words[1] __complete $words[2..-1] "$typed" 2>/dev/null)
        if test "$line" = :files
            __fish_complete_path (string replace -r '^--[^=]*=' '' -- "$typed")
        else
            printf "%s\n" $line
        end
    end
end
complete -c dtool -f -a '(__dtool_complete)'
