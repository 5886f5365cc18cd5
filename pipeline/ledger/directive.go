package ledger

import (
	"slices"
	"strings"

	"palimpsest/pipeline/conversation"
)

// orderCues are the words that make a sentence of a person a standing order.
var orderCues = cuesOf(
	"must", "mustn't", "may not use", "may only", "you may not", "keep in mind", "keep that in mind", "keep this in mind", "bear in mind",
	"don't forget", "do not forget", "from now on", "going forward", "prefer", "preferably",
	"remember to", "under no circumstances", "at all times", "only use", "without asking me", "as a rule", "important to me", "important that", "matters to me",
	"immer", "niemals", "stets", "ab jetzt", "ab sofort", "künftig", "in zukunft", "auf keinen fall", "ausschließlich", "jedes mal", "nach jeder", "vor jeder", "vor jedem",
	"siempre", "nunca", "a partir de ahora", "de ahora en adelante", "cada vez que", "asegúrate",
	"toujours", "jamais", "désormais", "dorénavant", "partir de maintenant", "chaque fois que", "assure-toi", "veille à",
	"sempre", "d'ora in poi", "ogni volta che", "assicurati", "de agora em diante", "partir de agora", "certifique-se",
	"altijd", "nooit", "voortaan", "vanaf nu", "zawsze", "nigdy", "od teraz",
)

// ever are words that do the same unless the sentence describes a present or past state.
var ever = cuesOf("always", "never")

// standingSigns do the same in languages without spaces between words, or with other letters.
var standingSigns = []string{
	"必须", "务必", "不要", "永远", "总是", "始终", "禁止", "以后", "今后", "从现在起", "每次", "一直", "绝不", "切勿", "必須", "務必", "永遠", "總是", "以後",
	"必ず", "常に", "絶対に", "ないでください", "これから", "今後", "毎回", "항상", "절대", "반드시", "하지 마", "하지 말", "앞으로", "지금부터", "매번",
	"всегда", "никогда", "с этого момента", "отныне", "впредь", "обязательно", "каждый раз", "предпочитаю", "завжди", "ніколи",
}

// negated are the words that forbid, unless the sentence is about someone.
var negated = []string{"don't", "dont", "do not"}

// tellers are words before "don't" that make it a statement.
var tellers = []string{"i", "we", "they", "you", "it", "that", "which", "who", "these", "those", "users", "why", "people", "still"}

// wanting are words after "don't" that make an order of a statement.
var wanting = []string{"want", "like", "use", "ever"}

// ourselves are the tellers whose "don't use" is a rule.
var ourselves = []string{"i", "we"}

// leads are the words before "don't" with which it is an order.
var leads = setOf("and but please pls so then also just or ok okay yes no now again well seriously really definitely absolutely you")

// opens are the first words of a sentence that say where or when an order applies.
var opens = setOf("if when whenever for in at on before after once while unless until as during from with")

// eachCaseOf are the words that make a sentence apply to each case of a kind.
var eachCaseOf = cuesOf(
	"all", "each", "every", "any", "always", "never", "only", "before", "after", "when", "whenever", "no", "not", "without", "anywhere", "everything",
)

// ofMoments are words that cancel the order in a sentence, because it is about actions of the
// person or of something else.
var ofMoments = cuesOf(
	"must have", "there must be", "must be something", "must've", "i must", "i'll make sure", "i will make sure", "i want to make sure", "i just want to make sure",
	"i wanted to make sure", "should never happen", "don't always", "doesn't always", "didn't always", "not always", "how do i make sure", "how can i make sure", "i always", "i've never", "i never",
)

// withoutAsides returns a sentence in lower case without leading transition words.
func withoutAsides(low string) string {
	for cut := true; cut; {
		cut = false
		for _, word := range polite {
			if rest, has := strings.CutPrefix(low, word); has {
				low, cut = rest, true
			}
		}
	}
	return low
}

// isDirective reports whether a sentence that a person typed is a standing order. It prefers false
// positives: they cost a line, but a false negative costs an order that the model then ignores.
func isDirective(sentence string) bool {
	low := lower(sentence)
	if slices.ContainsFunc(standingSigns, func(sign string) bool { return strings.Contains(low, sign) }) {
		return !strings.HasSuffix(low, "？") && !strings.HasSuffix(low, "?")
	}
	if len(sentence) < 8 || !strings.Contains(sentence, " ") {
		return false
	}
	if strings.HasSuffix(low, "?") && !asksFor(low) {
		return false
	}
	if startsWith(low, idioms) {
		return false
	}
	low = withoutQuotes(low)
	if supposes(low) {
		return false
	}
	if ofMoments.in(low) || strings.HasSuffix(strings.TrimRight(low, ".!"), "prefer that") {
		return false
	}
	if orderCues.in(low) || ever.in(low) && !describes(low) || isStated(low) {
		return true
	}
	if tasks.in(low) && !strings.HasSuffix(low, "?") && !strings.Contains(low, " also ") && (tasks.starts(withoutAsides(low)) || eachCaseOf.in(low)) {
		return true
	}
	if holdsOn(low) || holdsInCase(low) {
		return true
	}
	for _, words := range negated {
		for from := 0; ; {
			at := hasWords(low[from:], words)
			if at < 0 {
				break
			}
			at += from
			from = at + len(words)
			if forbids(low[:at], low[from:]) && !lets(low[from:]) {
				return true
			}
		}
	}
	return chooses(low)
}

// ordered returns the order in a sentence: the whole sentence, or the stated preference in a
// question.
func ordered(sentence string) (order string, found bool) {
	if isDirective(sentence) {
		return sentence, true
	}
	return preference(sentence)
}

// lower returns a sentence in lower case, with plain apostrophes.
func lower(sentence string) string {
	return strings.ReplaceAll(strings.ToLower(sentence), "’", "'")
}

// asksFor reports whether a question asks for an action.
func asksFor(low string) bool {
	low = strings.TrimPrefix(strings.TrimPrefix(low, "and "), "but ")
	return startsWith(low, []string{"can you ", "could you ", "would you ", "will you ", "please ", "can we ", "could we "})
}

// lets reports whether the words after "don't" only lift a duty.
func lets(behind string) bool {
	return startsWith(strings.TrimSpace(behind), []string{"need", "have to", "really need", "actually need", "know", "think", "see", "understand", "remember", "care", "mind"})
}

// forbids reports whether the words around "don't" make it an order.
func forbids(before, behind string) bool {
	before = withoutAsides(strings.TrimRight(before, " "))
	word := before[strings.LastIndexAny(before, " (,")+1:]
	if slices.Contains(ourselves, word) {
		return startsWith(strings.TrimSpace(behind), wanting) && !strings.HasPrefix(before, "no,")
	}
	if slices.Contains(tellers, word) {
		return false
	}
	first, _, _ := strings.Cut(before, " ")
	return before == "" || leads[word] || opens[first] && strings.Count(before, " ") < 4 || strings.HasSuffix(word, "ly") || strings.ContainsRune(".,;:(–—-", rune(before[len(before)-1]))
}

// chooses reports whether a sentence chooses one thing over another.
func chooses(low string) bool {
	if startsWith(low, []string{"i'll ", "i will "}) {
		return false
	}
	for _, word := range []string{"please", "let's"} {
		low = strings.TrimLeft(strings.TrimPrefix(low, word), " ,")
	}
	if startsWith(low, []string{"avoid ", "no more ", "no new ", "no other ", "only ", "keep ", "refrain from ", "stay away from ", "stick to ", "stick with "}) {
		return true
	}
	if what, isStop := strings.CutPrefix(low, "stop "); isStop {
		what, _, _ = strings.Cut(what, " ")
		return strings.HasSuffix(strings.TrimRight(what, ".!"), "ing")
	}
	at := hasWords(low, "use")
	if at < 0 || at > 24 {
		return false
	}
	rest := low[at:]
	return strings.Contains(rest, " instead of ") || strings.Contains(rest, " rather than ") || strings.Contains(rest, ", not ") ||
		strings.Contains(rest, " and not ") || strings.Contains(rest, " not ") || strings.HasSuffix(rest, " instead") || strings.HasSuffix(rest, " instead.")
}

// addDirective keeps a directive; a repeated one moves to its newest place.
func (l *Ledger) addDirective(directive Directive) {
	l.Directives = slices.DeleteFunc(l.Directives, func(d Directive) bool {
		if d.Kind != directive.Kind {
			return false
		}
		switch d.Kind {
		case Instructions:
			return d.Source == directive.Source
		case Plan:
			return true // only the newest plan applies
		case Typed:
		}
		return d.Text == directive.Text
	})
	l.Directives = append(l.Directives, directive)
}

// trimDirectives drops the oldest instruction files and typed directives if there are too many.
func (l *Ledger) trimDirectives() {
	files := 0
	for _, directive := range l.Directives {
		if directive.Kind == Instructions {
			files++
		}
	}
	l.Directives = slices.DeleteFunc(l.Directives, func(d Directive) bool {
		if d.Kind != Instructions || files <= maxSources {
			return false
		}
		files--
		return true
	})
	l.Directives = newest(l.Directives, maxDirectives, func(d *Directive) Place { return d.Place })
}

// addPlan keeps a plan that the person approved.
func (l *Ledger) addPlan(place Place, plan string) {
	if plan = strings.TrimSpace(plan); len(plan) > planCharacters {
		plan = Outline(plan)
	}
	if plan != "" {
		l.addDirective(Directive{Place: place, Kind: Plan, Text: bounded(plan, planCharacters)})
	}
}

// approved returns the plan that a person approved according to a result, with the person's edits;
// "" if absent.
func approved(call *Call, result *conversation.Block) string {
	said := strings.TrimSpace(result.Text)
	if !strings.HasPrefix(said, "User has approved") && !strings.HasPrefix(said, "User approved") {
		return ""
	}
	if _, rest, found := strings.Cut(said, "## Approved Plan"); found {
		if _, plan, found := strings.Cut(rest, "\n"); found {
			return plan
		}
	}
	return call.Plan
}

// startedPlan returns the plan that a new conversation begins with, after the person approved it in
// the previous one.
func startedPlan(text string) (plan string, found bool) {
	return strings.CutPrefix(strings.TrimSpace(conversation.WithoutReminders(text)), "Implement the following plan:")
}

// addInstructions keeps the instruction files that a client put into a text.
func (l *Ledger) addInstructions(place Place, text string) {
	keep := func(source, content string) {
		if content = strings.TrimSpace(content); content != "" {
			l.addDirective(Directive{Place: place, Kind: Instructions, Source: bounded(source, maxPath), Text: bounded(content, fileCharacters)})
		}
	}
	trimmed := strings.TrimSpace(text)
	if rest, found := strings.CutPrefix(trimmed, "# AGENTS.md instructions for "); found { // Codex
		folder, content, _ := strings.Cut(rest, "\n")
		content = strings.TrimPrefix(strings.TrimSpace(content), "<INSTRUCTIONS>")
		keep(strings.TrimSuffix(strings.TrimSpace(folder), "/")+"/AGENTS.md", strings.TrimSuffix(content, "</INSTRUCTIONS>"))
		return
	}
	for _, tag := range []string{"user_instructions", "user_rules", "always_applied_workspace_rules"} {
		if content, found := strings.CutPrefix(trimmed, "<"+tag+">"); found {
			content, _, _ = strings.Cut(content, "</"+tag+">")
			keep(tag, content)
		}
	}
	for _, content := range conversation.Reminders(text) {
		contents(content, keep)
	}
}

// contextStarts begin the reminders in which Claude Code shows instruction files; other reminders
// quote tool results.
var contextStarts = []string{"As you answer the user's questions", "Contents of ", "# claudeMd", "Codebase and user instructions"}

// contextSections follow the instruction files in such a reminder.
var contextSections = []string{
	"\n# gitStatus", "\n# currentDate", "\n# userEmail", "\n# important-instruction-reminders", "\n# directoryStructure",
	"\nIMPORTANT: this context may or may not be relevant",
}

// contents calls keep for each instruction file of a reminder: "Contents of /home/dev/CLAUDE.md
// (project instructions, checked into the codebase):".
func contents(reminder string, keep func(source, content string)) {
	reminder = strings.TrimSpace(reminder)
	if !startsWith(reminder, contextStarts) {
		return
	}
	const words = "\nContents of "
	parts := strings.Split("\n"+reminder, words)
	for _, part := range parts[1:] {
		title, content, _ := strings.Cut(part, "\n")
		source, _, _ := strings.Cut(strings.TrimSuffix(title, ":"), " (")
		if !strings.HasSuffix(source, ".md") && !strings.Contains(base(source), "rules") {
			continue
		}
		for _, section := range contextSections {
			content, _, _ = strings.Cut(content, section)
		}
		content, _, _ = strings.Cut(content, "\n      IMPORTANT: this context")
		keep(source, content)
	}
}

// supposes reports whether a sentence in lower case states its writer's assumption.
func supposes(low string) bool {
	return startsWith(withoutAsides(low), []string{"i think ", "i guess ", "it seems ", "it looks like ", "looks like ", "seems "}) &&
		!strings.Contains(low, "should ") && !strings.Contains(low, "let's ") && !ever.in(low)
}
