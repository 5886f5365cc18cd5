package resume

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/expression"
	"palimpsest/pipeline/wire"
)

// round holds the user's messages, the assistant's reply to them, and its calls.
type round struct {
	user  []said
	texts []string // of the assistant
	calls []call
}

// said is a text or an image of a user.
type said struct {
	text  string
	image *image
}

// image is an image with its bytes in base64.
type image struct{ mime, data string }

// url returns the image as a data URL.
func (i image) url() string { return "data:" + i.mime + ";base64," + i.data }

// call is a call of a tool that the client has, with its result.
type call struct {
	id, name string
	input    json.RawMessage // an object
	result   string
	failed   bool

	source string // the id in the recorded session
	isText bool   // the client has no such tool
	isDone bool   // there is a result
}

// noResult replaces the missing result of a call.
const noResult = "There is no result: the session was carried over before the tool had one."

// rounds returns the session in rounds, with the tools of a target.
func (s *Session) rounds(target Target) []round {
	cutter := cutter{target: target, isSame: target.ID == s.Client, used: map[string]bool{}}
	for i := range s.messages {
		cutter.add(&s.messages[i])
	}
	return cutter.finish()
}

// cutter cuts messages into rounds.
type cutter struct {
	target Target
	isSame bool // the session is of the same client
	done   []round
	open   round
	later  []said // user messages from before all results were there, and results as text
	used   map[string]bool
}

func (c *cutter) add(message *conversation.Message) {
	if message.Role == conversation.System {
		return // each client has its own
	}
	for i := range message.Blocks {
		switch block := &message.Blocks[i]; block.Kind {
		case conversation.Text:
			if message.Role == conversation.Assistant {
				c.speak(block.Text)
			} else {
				c.hear(typed(block.Text))
			}
		case conversation.ToolCall:
			c.call(block)
		case conversation.ToolResult:
			c.answer(block)
		case conversation.Media:
			for _, one := range block.Media {
				c.receive(shown(one))
			}
		case conversation.Opaque:
			if note := fmt.Sprintf("[%s: only the provider can read it]", block.Name); message.Role == conversation.Assistant {
				c.speak(note)
			} else {
				c.hear(note)
			}
		case conversation.Thinking:
		}
	}
}

// typed returns the part of a text that a person typed, without the additions of the other client.
func typed(text string) string {
	if !conversation.IsTyped(text) {
		return ""
	}
	return conversation.WithoutReminders(text)
}

// isBusy reports whether the open round has calls without a result.
func (c *cutter) isBusy() bool {
	for i := range c.open.calls {
		if !c.open.calls[i].isDone {
			return true
		}
	}
	return false
}

// next closes the open round if the assistant has spoken in it.
func (c *cutter) next() {
	if len(c.open.texts)+len(c.open.calls) == 0 {
		return
	}
	c.close()
}

func (c *cutter) close() {
	c.done = append(c.done, c.open)
	c.open, c.later = round{user: c.later}, nil
}

func (c *cutter) hear(text string) {
	if strings.TrimSpace(text) != "" {
		c.receive(said{text: text})
	}
}

func (c *cutter) receive(one said) {
	if c.isBusy() {
		c.later = append(c.later, one)
		return
	}
	c.next()
	c.open.user = append(c.open.user, one)
}

// turn opens a new round for the assistant if the open one has calls and all of them have results.
func (c *cutter) turn() {
	if len(c.open.calls) > 0 && !c.isBusy() {
		c.close()
	}
}

func (c *cutter) speak(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	c.turn()
	c.open.texts = append(c.open.texts, text)
}

func (c *cutter) call(block *conversation.Block) {
	c.turn()
	one := call{source: block.ID, name: block.Name}
	made, is := operationOf(block.Name, block.Text)
	switch {
	case block.IsUnread:
		one.isText = true
	case c.isSame && isObject(block.Text):
		one.input = json.RawMessage(block.Text)
	case is:
		if name, input := c.target.native(made); name != "" {
			one.name, one.input = name, encoded(input)
			break
		}
		one.isText = true
	default:
		one.isText = true
	}
	if one.isText {
		arguments := block.Text
		if block.IsUnread {
			arguments = string(block.Raw)
		}
		c.open.texts = append(c.open.texts, fmt.Sprintf("[Tool call] %s %s", block.Name, arguments))
	} else {
		one.id = c.freeID(block.ID)
	}
	c.open.calls = append(c.open.calls, one)
}

// callID matches the call ids that every provider accepts.
var callID = expression.New(`^[A-Za-z0-9_-]{1,40}$`)

// freeID returns the id of a call, or a new one if it is taken or a provider would refuse it.
func (c *cutter) freeID(id string) string {
	for free := id; ; {
		if callID.MatchString(free) && !c.used[free] {
			c.used[free] = true
			return free
		}
		sum := sha256.Sum256(fmt.Appendf(nil, "%s|%d", free, len(c.used)))
		free = "call_" + hex.EncodeToString(sum[:12])
	}
}

func (c *cutter) answer(block *conversation.Block) {
	text := conversation.WithoutReminders(block.Text)
	if block.IsUnread {
		text = string(block.Raw)
	}
	for i := range c.open.calls {
		one := &c.open.calls[i]
		if one.isDone || one.source != block.ID {
			continue
		}
		one.isDone, one.result, one.failed = true, text, block.IsError
		if one.isText {
			c.later = append(c.later, said{text: fmt.Sprintf("[Tool result] %s\n%s", one.name, text)})
		}
		for _, media := range block.Media {
			c.later = append(c.later, shown(media))
		}
		return
	}
	c.receive(said{text: "[Tool result]\n" + text})
}

// finish returns the rounds, without the calls written as text.
func (c *cutter) finish() []round {
	if len(c.open.texts)+len(c.open.calls) > 0 {
		c.close()
	}
	if len(c.open.user) > 0 {
		c.done = append(c.done, c.open)
	}
	for i := range c.done {
		var native []call
		for _, one := range c.done[i].calls {
			if !one.isDone {
				one.result, one.failed = noResult, true
			}
			if !one.isText {
				native = append(native, one)
			}
		}
		c.done[i].calls = native
	}
	return c.done
}

// shown returns an image, or a note that other media is kept in the archive.
func shown(media conversation.Attachment) said {
	if found, is := imageOf(media.Raw); is {
		return said{image: &found}
	}
	return said{text: fmt.Sprintf("[%s, %d bytes, in the archive]", media.Type, media.Size)}
}

// imageOf reads an image from its bytes in a request.
func imageOf(raw json.RawMessage) (image, bool) {
	source := wire.Get(raw, "source")
	found := image{wire.Text(source, "media_type"), wire.Text(source, "data")}
	if url, is := wire.String(wire.Get(raw, "image_url")); is {
		found = dataURL(url)
	} else if url := wire.Text(wire.Get(raw, "image_url"), "url"); url != "" {
		found = dataURL(url)
	}
	return found, strings.HasPrefix(found.mime, "image/") && found.data != ""
}

func dataURL(url string) image {
	head, data, _ := strings.Cut(strings.TrimPrefix(url, "data:"), ",")
	mime, is := strings.CutSuffix(head, ";base64")
	if !is || !strings.HasPrefix(url, "data:") {
		return image{}
	}
	return image{mime, data}
}

func isObject(text string) bool {
	return strings.HasPrefix(strings.TrimSpace(text), "{") && json.Valid([]byte(text))
}

func encoded(value any) json.RawMessage {
	text, err := json.Marshal(value)
	if err != nil {
		panic("resume: " + err.Error()) // inputs are structs of strings and numbers
	}
	return text
}
