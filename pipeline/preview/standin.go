package preview

import (
	"crypto/sha256"
	"fmt"
	"strconv"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
)

const (
	// charactersPerToken is how many characters of a stand-in count as one token.
	charactersPerToken = 4
	// longestResult is the maximum of characters of a result's stand-in: enough to be cut at L1.
	longestResult = 240
	// longestText is the same for other messages: only a first sentence, with the average length in
	// records.
	longestText = 170
	// longestTyped is the same for typed messages, which records have word for word.
	longestTyped = 4_000
)

// filler is the text of stand-ins: a sentence of average length, and more.
const filler = " of the messages that are counted here says so much in its first sentence as one does on the average of those that were measured, " +
	"which is what a record keeps of it at the second level. The rest of the text is there to be cut, and says nothing that any later turn would use again and again. "

// argument is the text of a call's stand-in after its id: as long as the average record of a call
// with the names in it that later turns use. Every other call reads a file, which compactions keep
// longer than other results.
const argument = " of the work in hand, which names a file or two and a flag, as commands do on the average of all these"

// verdict ends the result of a stand-in. Outlines quote the newest ones.
const verdict = `\nexit code 0`

// standIns returns a stand-in for each message of a lane.
func standIns(messages []session.Counted) (talk, error) {
	calls, results := pairs(messages)
	body := make([]byte, 0, len(messages)*(longestResult+longestText))
	body = append(body, `{"messages":[`...)
	for i, message := range messages {
		if i > 0 {
			body = append(body, ',')
		}
		role := conversation.User
		if message.Role == conversation.Assistant {
			role = conversation.Assistant
		}
		body = append(append(append(body, `{"role":"`...), role...), `","content":[`...)
		body = append(appendBlocks(body, i, message, calls[i], results[i]), "]}"...)
	}
	body = append(body, "]}"...)
	codec := anthropic.New()
	envelope, err := wire.Open(body, codec.List())
	if err != nil {
		return talk{}, fmt.Errorf("open stand-ins: %w", err)
	}
	return talk{codec: codec, body: envelope, digests: digests(messages), count: countText}, nil
}

// digests returns digests of messages, each with a unique name.
func digests(messages []session.Counted) []conversation.Digest {
	known := make([]conversation.Digest, len(messages))
	for i, message := range messages {
		name := sha256.Sum256([]byte(strconv.Itoa(i)))
		known[i] = conversation.Digest{Sum: name, Identity: name, Role: message.Role, Flags: message.Flags, Tokens: message.Tokens}
	}
	return known
}

// pairs returns the calls of each message and the call that each message with a result answers. A
// message may answer several calls; its stand-in answers one.
func pairs(messages []session.Counted) (calls map[int][]string, results map[int]string) {
	calls, results = map[int][]string{}, map[int]string{}
	var open []int // messages with unanswered calls
	last := -1
	for i, message := range messages {
		switch {
		case message.Flags.Has(conversation.HasCall):
			open, last = append(open, i), i
		case message.Flags.Has(conversation.HasResult) && last >= 0:
			of := last
			if len(open) > 0 {
				of, open = open[0], open[1:]
			}
			results[i] = "call_" + strconv.Itoa(i)
			calls[of] = append(calls[of], results[i])
		}
	}
	for _, i := range open {
		calls[i] = append(calls[i], "open_"+strconv.Itoa(i))
	}
	return calls, results
}

// appendBlocks appends the content of the stand-in for message i.
func appendBlocks(body []byte, i int, message session.Counted, calls []string, result string) []byte {
	characters := message.Tokens * charactersPerToken
	if result != "" {
		body = append(append(body, `{"type":"tool_result","tool_use_id":"`...), result...)
		body = append(appendWords(append(body, `","content":"`...), i, min(characters, longestResult)-len(verdict)), verdict+`"},`...)
	}
	longest := longestText
	if result == "" && message.Flags.Has(conversation.HasTyped) {
		longest = longestTyped
	}
	if result == "" || message.Flags.Has(conversation.HasTyped) {
		body = append(appendWords(append(body, `{"type":"text","text":"`...), i, min(characters, longest)), `"},`...)
	}
	for n, call := range calls {
		body = append(append(body, `{"type":"tool_use","id":"`...), call...)
		body = append(body, `","name":"Bash","input":{"command":"`...)
		if (i/2+n)%2 == 0 {
			body = append(append(append(body, "cat "...), call...), "; "...)
		}
		body = append(append(append(body, "step "...), call...), argument...)
		body = append(body, `"}},`...)
	}
	return body[:len(body)-1] // there is at least one block
}

// appendWords appends so many characters, in sentences that differ in each message.
func appendWords(body []byte, i, characters int) []byte {
	end := len(body) + max(0, characters)
	body = strconv.AppendInt(body, int64(i), 10)
	for len(body) < end {
		body = append(body, filler...)
	}
	return body[:end]
}

// countText counts the module's texts about stand-ins by their characters.
func countText(text string) int { return len(text)/charactersPerToken + 1 }

// countMessage counts a stand-in, or the module's message about it, by its characters.
func countMessage(message conversation.Message) int {
	characters := 0
	for i := range message.Blocks {
		block := &message.Blocks[i]
		characters += len(block.Text) + len(block.Name)
	}
	return characters/charactersPerToken + 4
}
