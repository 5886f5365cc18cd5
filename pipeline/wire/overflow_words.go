package wire

import (
	"strconv"
	"strings"

	"palimpsest/pipeline/expression"
)

// The wording of errors about long prompts differs in each release of each server. Therefore the expressions
// match words rather than sentences: the subject, the excess, and the meaning of each number. They match
// texts in the form that plain returns.
var (
	// contextWords name the window.
	contextWords = expression.New(`context[ _-]?(length|window|size|limit)|max_seq_len|max_model_len|max_position_embeddings|session_len|\bn_ctx\b|slot context|out ?of ?context|(inputs?|prompt|sequence|prompt_tokens|message) (token )?length`)

	// promptWords name the prompt or a part of it.
	promptWords = expression.New(`\b(prompts?|inputs?|messages?|conversation|chat history|history|request|text|sequence|tokens?|query|prompt_tokens|input_tokens)\b`)

	// tooMuchWords say that something is too much.
	tooMuchWords = expression.New(`exceed|too (long|large|big|many)|longer than|larger than|greater than|more than|less than|at most|over the|overflow|beyond|out ?of ?context|maximum|\bmax|only|limit|reduce|shorten|reached|not enough|does(n't| not) fit|surpass|but the|>`)

	// tooLongWords say that the prompt itself is too long.
	tooLongWords = expression.New(`\b(prompt|input|inputs|messages|conversation|history|request)( (is|are|was|were))? too (long|big)|\bprompts?\b[^.]{0,60}\b(exceed|longer than|larger than|over the)|too long for (the |this |requested )?(model|context)|input tokens exceed|reduce (the length of )?(the|your) (messages|prompt|input|context|conversation)|` +
		`range of input length should be|job requires \d+ pages|job requires more pages|context overflow|token limit exceeded|prompt 超长|最大上下文(长度|窗口)`)

	// cjkWords and cjkTooMuch are their Chinese, Japanese and Korean equivalents.
	cjkWords   = expression.New(`上下文|输入|提示词|prompt|token|长度|消息|入力|トークン|コンテキスト|プロンプト|입력|토큰|컨텍스트|프롬프트`)
	cjkTooMuch = expression.New(`超过|超出|超限|超长|过长|大于|超え|超過|長すぎ|초과|너무 (길|많)`)

	// weakWords also describe rates, so they don't count with status 429.
	weakWords = expression.New(`too many (input )?tokens|token limit exceeded|reduce (the length of )?(the|your) messages`)

	// rateWords indicate a rate limit, or a lack of money.
	rateWords = expression.New(`rate[ _-]?limit|too many requests|per (minute|min|second|sec|hour|day|week|month)\b|\b(tpm|rpm|tpd|rpd|itpm|otpm)\b|quota|throttl|please wait|try again (in|later)|\b(daily|monthly|weekly|hourly)\b|` +
		`\bcredits?\b|billing|afford|\bbalance\b|payment|subscription|upgrade|budget ?(has been )?exceeded|exceeded ?budget|over budget|频率|限流|余额|配额|额度|欠费|套餐`)

	// otherFaults indicate a timeout, or a model that does not exist.
	otherFaults = expression.New(`deadline exceeded|timed? ?out|does(n't| not) exist|no such model|model not found`)

	// answerWords name the answer, and answerSubject matches an error about the answer's length.
	answerWords   = expression.New(`max[ _]?(completion|output|new)?[ _]?tokens?\b|maxoutputtokens|max_gen_len|maximum tokens (you requested|value)|(output|completion) tokens?`)
	answerSubject = expression.New(`(max_(completion_|output_|new_)?tokens|maxoutputtokens|maximum tokens)[^a-z0-9_]{0,3}(or '?"?max_completion_tokens'?"? )?(value |parameter |of \d+ )?(you requested )?(must|should|is too (large|high|big)|cannot|can't|exceeds?|has to|is (above|greater|larger|more)|value of|: ?\d+ >)`)
	otherWords    = expression.New(`\b(prompts?|inputs?|messages|conversation|context)\b|context[ _]|in (the )?request`)

	// places match the start of an error about a certain part of the request, because it may quote that part.
	places = expression.New(`\b(messages|input|system|tools|contents)(\.\d|\[\d|\.\[)|\b(system|tools)\.`)

	heavyWords = expression.New(`(request|payload|body|entity)( entity| body)?( is| was)? too (large|big)|exceeds the maximum (request |body |payload )?size|body size limit|too large[^.]{0,40}\bbytes\b|(request|message) size \(\d+ bytes\) exceeds`)

	// bytesWords name units other than tokens.
	bytesWords = expression.New(`\b(characters?|chars|bytes|mb|kb|mib|megabytes|pixels|images?|files?|pdf)\b`)
)

// plain returns a text in lower case, without the escapes of quoting, and with numbers as plain digits.
func plain(text string) string {
	if len(text) > MaxError {
		text = text[:MaxError]
	}
	text = unquoted.Replace(strings.ToLower(text))
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, `\`, "")), " ")
	text = fractions.Compiled().ReplaceAllString(text, "$1")
	return groups.Compiled().ReplaceAllStringFunc(text, func(number string) string { return strings.NewReplacer(",", "", "_", "").Replace(number) })
}

var (
	unquoted = strings.NewReplacer(`\u003e`, ">", `\u003c`, "<", `\u0027`, "'", `\u0026`, "&", `\u0022`, `"`, `\u0060`, "`", `\u2019`, "'", "’", "'", `\n`, " ", `\t`, " ", "\u00a0", " ")
	groups   = expression.New(`\b\d{1,3}(,\d{3})+\b|\b\d{1,3}(_\d{3})+\b`)

	fractions = expression.New(`\b(\d{3,})\.0\b`) // counts as floating point numbers
)

// worded reads a text about an overlong prompt. isRate means that it came with the status of a rate limit.
func worded(text string, isRate bool) (said Overflow, ok bool) {
	at := lengthAt(text)
	if at < 0 || otherFaults.MatchString(text) || isRate && weakWords.MatchString(text) && !contextWords.MatchString(text) {
		return Overflow{}, false
	}
	if place := places.FindStringIndex(text); place != nil && place[0] <= at {
		return Overflow{}, false
	}
	said = numbersOf(text)
	if answerSubject.MatchString(text) && (said.Tokens == 0 || said.Window == 0) || answerWords.MatchString(text) && !otherWords.MatchString(text) {
		return Overflow{}, false // the answer is too long, not the prompt
	}
	if said.Window > 0 && (said.Reserved >= said.Window || said.Tokens > 0 && said.Tokens+said.Reserved <= said.Window) {
		return Overflow{}, false
	}
	return said, true
}

// lengthAt returns where a text says that a prompt is too long; -1 if it doesn't.
func lengthAt(text string) int {
	if found := tooLongWords.FindStringIndex(text); found != nil {
		return found[0]
	}
	if found := cjkTooMuch.FindStringIndex(text); found != nil && cjkWords.MatchString(text) {
		return found[0]
	}
	if found := contextWords.FindStringIndex(text); found != nil && tooMuchWords.MatchString(text) {
		return found[0]
	}
	found := tooMany.FindStringIndex(text)
	if found == nil || !promptWords.MatchString(text) || !strings.Contains(text, "token") || bytesWords.MatchString(text) && !strings.Contains(text, "tokens") {
		return -1
	}
	return found[0]
}

// tooMany are words of excess that suffice without naming the window.
var tooMany = expression.New(`exceed|too (long|large|big|many)|longer than|larger than|greater than|more than|must (be|have) (less than|<)|cannot be (longer|larger|more)|(only )?supports? (up to|at most)`)

// number is a number in a text, with the text around it.
type number struct {
	value         int
	before, after string
}

const (
	// leastWindow is the smallest plausible window, in tokens.
	leastWindow = 512

	// nearby is how many bytes around a number determine its meaning.
	nearby = 34
)

var (
	integers   = expression.New(`\d+`)
	limitWord  = expression.New(`max[a-z_]*|limit|context[ _-]?(length|window|size)|allowed|supports?|up to|only|less than|cannot exceed|can't exceed|(not|cannot|can't) be (greater|larger|longer|more) than|at most|<=?|>=?|configured|n_ctx|window of|should be \[1,|n_ctx_slot|slot context|session_len|最大|上限|限制`)
	answerWord = expression.New(`(output|completion|new|gen)[ _]?tokens?|max_tokens|is too large:`)
	answerLast = expression.New("(max_(completion_|output_|new_)?tokens|\\b(requested|plus( the)?) (completion|output|new) tokens)`?( of|:)? ?\\(?$")
	promptLast = expression.New(`\b(prompt|input)[ _]?(token )?(length|tokens?|size|count)?( of| is|:)? ?\(?$`)
	subject    = expression.New("^[^a-z0-9]{0,3}(tokens?)?[^a-z0-9]{0,3}(exceed|>|is (longer|larger|greater|more)|cannot exceed|must be less|超过|超出|大于)")
	limitNext  = expression.New("^ ?(tokens? )?(maximum|max|limit)\\b")
	promptNext = expression.New("^ ?(tokens? )?(in (the|your) (messages|prompt|functions|tools|input)|of (text|tool|image|audio|file) input|`?inputs?`? tokens?|prompt tokens?|input tokens?|(text|tool|image|audio) tokens?)")
	answerNext = expression.New("^ ?(tokens? )?((in|for) (the|your) (completion|output|answer|response)|`?max_(new_|completion_|output_)?tokens|(output|completion|new|generated) tokens?)")
	sum        = expression.New(`(\d+) \+ (\d+) > (\d+)`)
	ranges     = expression.New(`range of input length should be \[\d+, ?(\d+)\]`)
	ownCode    = expression.New(`(^|[^a-z])invalid params?, .*(\(\d{4}\))`) // MiniMax ends its messages with its code
	pages      = expression.New(`job requires (\d+) pages \(only (\d+) available\)`)
)

// pageTokens is the page size of exllamav2's and exllamav3's cache, in tokens.
const pageTokens = 256

// numbersOf reads the numbers of a text about an overlong prompt.
func numbersOf(text string) (said Overflow) {
	if found := sum.FindStringSubmatch(text); found != nil {
		return Overflow{Tokens: integer(found[1]), Reserved: integer(found[2]), Window: integer(found[3])}
	}
	if found := pages.FindStringSubmatch(text); found != nil {
		return Overflow{Tokens: pageTokens * integer(found[1]), Window: pageTokens * integer(found[2])}
	}
	if found := ranges.FindStringSubmatch(text); found != nil {
		return Overflow{Window: integer(found[1])}
	}
	if found := ownCode.FindStringSubmatchIndex(text); found != nil {
		text = text[:found[4]] + text[found[5]:]
	}
	largest := 0
	for _, number := range numbersIn(text) {
		switch {
		case promptNext.MatchString(number.after) && !strings.HasSuffix(number.before, "limit of "):
			said.Tokens += number.value
		case answerNext.MatchString(number.after):
			said.Reserved = number.value
		case answerLast.MatchString(number.before):
			said.Reserved = number.value
		case promptLast.MatchString(number.before) && !limitWord.MatchString(number.before):
			said.Tokens = max(said.Tokens, number.value)
		case subject.MatchString(number.after):
			largest = max(largest, number.value)
		case number.isOfAnswer():
			said.Reserved = number.value
		case said.Window == 0 && number.value >= leastWindow && number.isLimit():
			said.Window = number.value
		default:
			largest = max(largest, number.value)
		}
	}
	if said.Tokens == 0 && largest > said.Window {
		said.Tokens = largest
		if said.Tokens-said.Reserved > 0 && strings.Contains(text, "requested") {
			said.Tokens -= said.Reserved // the text named the total and the reserved part
		}
	}
	if bytesWords.MatchString(text) && !strings.Contains(text, "token") || said.Window > 0 && said.Tokens > 64*said.Window {
		said.Tokens = 0
	}
	if said.Window == 0 || bytesWords.MatchString(text) && !strings.Contains(text, "token") {
		return Overflow{}
	}
	return said
}

// numbersIn returns the separate numbers of a text.
func numbersIn(text string) (numbers []number) {
	end := 0
	for _, at := range integers.FindAllStringIndex(text, -1) {
		before, after := text[end:at[0]], text[at[1]:]
		end = at[1]
		if isPart(text[:at[0]], after) || strings.HasSuffix(before, " by ") {
			continue
		}
		for _, end := range []string{". ", "; ", ": "} {
			if cut := strings.LastIndex(before, end); cut >= 0 && cut+len(end) < len(before) {
				before = before[cut+len(end):]
			}
		}
		numbers = append(numbers, number{value: integer(text[at[0]:at[1]]), before: before[max(0, len(before)-nearby):], after: after[:min(len(after), nearby)]})
	}
	return numbers
}

// isPart reports whether a number is part of a name, a date, or a fraction.
func isPart(before, after string) bool {
	if before != "" {
		last := before[len(before)-1]
		if last == '-' && len(before) > 1 && before[len(before)-2] == ' ' {
			last = ' '
		}
		if last == '_' || last == '-' || last == '/' || last == '.' || last == '#' || 'a' <= last && last <= 'z' {
			return true
		}
	}
	if after == "" {
		return false
	}
	next := after[0]
	return next == '_' || next == '-' || 'a' <= next && next <= 'z' || next == '.' && len(after) > 1 && '0' <= after[1] && after[1] <= '9'
}

// isLimit reports whether the text around a number calls it a limit.
func (n number) isLimit() bool {
	return limitWord.MatchString(n.before) || limitNext.MatchString(n.after)
}

// isOfAnswer reports whether the nearest word before a number calls it the length of the answer.
func (n number) isOfAnswer() bool {
	return lastIndex(answerWord, n.before) > lastIndex(limitWord, n.before)
}

// lastIndex returns where the last match of words ends; -1 if absent.
func lastIndex(words *expression.Regexp, text string) int {
	found := words.FindAllStringIndex(text, -1)
	if len(found) == 0 {
		return -1
	}
	return found[len(found)-1][1]
}

// integer returns the value of digits; 0 if it exceeds maxCount.
func integer(digits string) int {
	value, err := strconv.Atoi(digits)
	if err != nil || value > maxCount {
		return 0
	}
	return value
}
