// sluice completion: a script that completes commands and flags. zsh loads the one of bash.
import type { Flag } from "../command.ts";
import { type Commands, commandTable, type TableEntry } from "../command-table.ts";
import { contractFlags } from "../contract-flags.ts";
import { usageError } from "../exit.ts";
import { globalFlags } from "../parse.ts";
import { operationOf } from "../run-command.ts";

const shells = ["bash", "zsh"];
/** Most people's .zshrc has started zsh's completion already, and starting it takes a while. */
const zshStart = `(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
autoload -Uz bashcompinit && bashcompinit
`;

export const commands: Commands = {
  "": {
    summary: "Print the completion script of a shell",
    arguments: ["shell"],
    details: "The shell is bash or zsh.",
    examples: [
      "completion bash > ~/.local/share/bash-completion/completions/sluice",
      `completion zsh > ~/.sluice-completion && echo 'source ~/.sluice-completion' >> ~/.zshrc`,
    ],
    needsApi: false,
    async run({ values, out }) {
      if (!shells.includes(String(values.shell)))
        throw usageError(`"${values.shell}" is none of ${shells.join(", ")}`);
      out.line((values.shell === "zsh" ? zshStart : "") + (await bashScript()));
    },
  },
};

async function bashScript(): Promise<string> {
  const cases: string[] = [];
  for (const [name, entry] of Object.entries<TableEntry>(commandTable)) {
    const { commands } = await entry.load();
    if (!commands[""]) cases.push(caseOf(name, [...Object.keys(commands), "--help"]));
    for (const [subcommand, command] of Object.entries(commands)) {
      const flags = [
        ...contractFlags(operationOf(command), command),
        ...(command.flags ?? []),
        ...globalFlags,
      ];
      const more = name === "completion" ? shells : [];
      cases.push(caseOf(`${name} ${subcommand}`.trim(), [...more, ...flags.map((flag) => `--${flag.name}`)]));
      cases.push(...flags.flatMap((flag) => choicesOf(`${name} ${subcommand}`.trim(), flag)));
    }
  }
  return `# Completes the commands and flags of sluice.
_sluice() {
  local current="\${COMP_WORDS[COMP_CWORD]}" before="\${COMP_WORDS[COMP_CWORD-1]}" words=""
  local command="\${COMP_WORDS[1]-}" both="\${COMP_WORDS[1]-} \${COMP_WORDS[2]-}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    words="${Object.keys(commandTable).join(" ")} help --help --version"
  else
    words="$(_sluice_words "$both $before")"
    [ -n "$words" ] || words="$(_sluice_words "$command $before")"
    [ -n "$words" ] || { [ "$COMP_CWORD" -gt 2 ] && words="$(_sluice_words "$both")"; }
    [ -n "$words" ] || words="$(_sluice_words "$command")"
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current" || true))
}
_sluice_words() {
  case "$1" in
${cases.join("\n")}
  esac
}
complete -o default -F _sluice sluice`;
}

function caseOf(name: string, words: readonly string[]): string {
  return `    "${name}") echo "${words.join(" ")}" ;;`;
}

/** The values of a flag that has only some. */
function choicesOf(name: string, { name: flag, choices }: Flag): string[] {
  return choices ? [caseOf(`${name} --${flag}`, choices)] : [];
}
