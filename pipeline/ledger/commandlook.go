package ledger

import (
	"slices"
	"strings"
)

// lookers are the programs that change no state: if one fails, something was absent.
var lookers = setOf(`grep egrep fgrep rg ag ls find fd tree cat bat head tail less more wc jq yq which type whereis command
	sort uniq cut tr awk diff cmp test [ [[ stat file du df echo printf pwd cd pushd popd env printenv date sleep true false
	ps pgrep lsof uname id whoami hostname basename dirname realpath readlink md5sum sha256sum xxd od strings export set`)

// lookingWords are the subcommands that only look, by program.
var lookingWords = map[string]map[string]bool{
	"git": setOf(`log show diff status branch blame rev-parse rev-list ls-files ls-tree remote config describe grep
		shortlog reflog cat-file merge-base name-rev for-each-ref show-ref symbolic-ref ls-remote check-ignore`),
	"gh": setOf("search status"), "docker": setOf("ps logs images inspect version info"), "kubectl": setOf("get describe logs version"),
	"npm": setOf("ls list view outdated root"), "go": setOf("list env doc version"), "cargo": setOf("tree metadata search"), "pip": setOf("list show freeze"),
}

// probers are the programs that end with exit code 1 if they find no match, or a difference.
var probers = setOf("grep egrep fgrep rg ag diff cmp test [ [[ pgrep which type command")

// interpreters run the script that their first argument names.
var interpreters = setOf("python python3 node deno bun ruby perl php bash sh zsh tsx ts-node")

// outcome notes what the success or failure of the script's next command means.
func (s *script) outcome(c *simple, name string, words []string) {
	s.piped = s.piped || c.piped
	if !isLook(name, words) {
		s.acts = true
	}
	if !c.piped || s.likeness == "" {
		s.likeness = likenessOf(name, words)
	}
	s.probes = probers[name] || name == "git" && len(words) > 1 && (words[1] == "diff" || words[1] == "grep")
	if made, is := checkOf(words, s.folder); is && len(s.checks) < maxNames {
		if !c.isNext {
			s.passes = 0 // earlier commands may have failed
		}
		s.checks = append(s.checks, made)
		s.passes++
	}
}

// isLook reports whether a command changes no state.
func isLook(name string, words []string) bool {
	if name == "sed" {
		return !slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(word, "-i") || strings.HasPrefix(word, "--in-place") })
	}
	if looking, has := lookingWords[name]; has {
		rest := words[1:]
		for len(rest) > 1 && (rest[0] == "-C" || rest[0] == "-c") {
			rest = rest[2:]
		}
		if len(rest) == 0 || looking[rest[0]] {
			return true
		}
		if name == "gh" {
			return len(rest) > 1 && (rest[1] == "view" || rest[1] == "list" || rest[1] == "diff" || rest[1] == "checks" || rest[1] == "status") ||
				rest[0] == "api" && !slices.ContainsFunc(rest, func(word string) bool {
					return slices.Contains([]string{"-X", "--method", "-f", "-F", "--field", "--raw-field", "--input"}, word) || strings.HasPrefix(word, "-X")
				})
		}
		return false
	}
	return lookers[name]
}

// likenessOf returns the likeness of a command: the success of one command supersedes the failure
// of another with the same likeness.
func likenessOf(name string, words []string) string {
	switch {
	case slices.Contains([]string{"git", "gh", "docker", "kubectl"}, name):
		if len(words) > 1 {
			return name + " " + words[1]
		}
	case interpreters[name]:
		if names := plain(words[1:]); len(names) > 0 {
			return name + " " + oneLine(names[0], subjectCharacters)
		}
	case taskRunners[name]:
		if names := plain(words[1:]); len(names) > 0 {
			return name + " " + oneLine(strings.Join(names[:min(2, len(names))], " "), subjectCharacters)
		}
	case !lookers[name]:
		return name
	}
	return ""
}

// settled are the commands of git after which a merge, a rebase or the like is over.
var settled = map[string][]string{
	"merge": {"commit", "merge", "reset"}, "pull": {"commit", "pull", "merge", "rebase", "reset"}, "rebase": {"rebase", "reset"},
	"cherry-pick": {"commit", "cherry-pick", "reset"}, "revert": {"commit", "revert", "reset"}, "stash": {"stash", "commit"}, "push": {"push"},
}

// settles reports whether a successful command makes up for a failed one of a likeness.
func settles(likeness, failed string) bool {
	if likeness == "" || failed == "" {
		return false
	}
	if likeness == failed {
		return true
	}
	done, isGit := strings.CutPrefix(likeness, "git ")
	began, wasGit := strings.CutPrefix(failed, "git ")
	return isGit && wasGit && slices.Contains(settled[began], done)
}

// isHeldUp reports whether a failed command waits for its conflicts to be resolved.
func isHeldUp(likeness string) bool {
	began, isGit := strings.CutPrefix(likeness, "git ")
	return isGit && began != "push" && settled[began] != nil
}
