package preview

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/session"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
)

const (
	// charactersPerToken is how many characters of a stand-in are counted as a token.
	charactersPerToken = 4
	// longestResult is how many characters the stand-in for a result has at most: enough
	// to be cut at L1.
	longestResult = 240
	// longestText is the same of other messages: a first sentence of the length that
	// records keep on the average, and no more.
	longestText = 140
)

// filler is what stand-ins say: a sentence of some length, and more.
const filler = " of the messages that are counted here says so much in its first sentence as one does on the average of those that were measured, " +
	"which is what a record keeps of it at the second level. The rest of the text is there to be cut, and says nothing that any later turn would use again and again. "

// standIns returns a body with a stand-in for each message of a lane.
func standIns(messages []session.Counted) (*wire.Envelope, error) {
	calls, results := pairs(messages)
	var body strings.Builder
	body.WriteString(`{"messages":[`)
	for i, message := range messages {
		if i > 0 {
			body.WriteByte(',')
		}
		role := "user"
		if message.Role == conversation.Assistant {
			role = "assistant"
		}
		fmt.Fprintf(&body, `{"role":%q,"content":[%s]}`, role, strings.Join(blocks(i, message, calls[i], results[i]), ","))
	}
	body.WriteString(`]}`)
	envelope, err := wire.Open([]byte(body.String()), anthropic.New().List())
	if err != nil {
		return nil, fmt.Errorf("open stand-ins: %w", err)
	}
	return envelope, nil
}

// pairs returns the calls of each message and the call that each message with a
// result answers. A message may answer several calls; its stand-in answers one.
func pairs(messages []session.Counted) (calls map[int][]string, results map[int]string) {
	calls, results = map[int][]string{}, map[int]string{}
	var open []int // messages with calls that nothing has answered yet
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

// blocks returns the content of the stand-in for message i.
func blocks(i int, message session.Counted, calls []string, result string) []string {
	characters := message.Tokens * charactersPerToken
	var blocks []string
	if result != "" {
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_result","tool_use_id":%q,"content":%q}`, result, words(i, min(characters, longestResult))))
	}
	if result == "" || message.Flags.Has(conversation.HasTyped) {
		blocks = append(blocks, fmt.Sprintf(`{"type":"text","text":%q}`, words(i, min(characters, longestText))))
	}
	for _, call := range calls {
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"Bash","input":{"command":"step %s of the work in hand"}}`, call, call))
	}
	return blocks
}

// words returns so many characters, in sentences, that no other message has.
func words(i, characters int) string {
	return (strconv.Itoa(i) + filler)[:characters]
}

// codec reads each stand-in once.
type codec struct {
	wire.Codec

	read map[*byte]conversation.Message // by where it stands in the body
}

// Parse reads a stand-in.
func (c codec) Parse(raw json.RawMessage) (conversation.Message, error) {
	if message, known := c.read[&raw[0]]; known {
		return message, nil
	}
	message, err := c.Codec.Parse(raw)
	if err != nil {
		return conversation.Message{}, fmt.Errorf("read stand-in: %w", err)
	}
	c.read[&raw[0]] = message
	return message, nil
}

// counter counts stand-ins, and what is made of them, by their characters.
type counter struct{}

// Message counts a message.
func (counter) Message(message conversation.Message) int {
	characters := 0
	for i := range message.Blocks {
		block := &message.Blocks[i]
		characters += len(block.Text) + len(block.Name)
	}
	return characters/charactersPerToken + 4
}
