package apibench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/google/uuid"
)

// Novelty is how much of a request is new.
type Novelty int

// The kinds of consecutive requests in a load.
const (
	NextTurn      Novelty = iota // the session continues: an answer and a new message follow the last request
	NewestMessage                // the newest message is sent again, after the same history
	FirstMessage                 // another session: its first message is new, the others are known
	EveryMessage                 // another session, entirely new
)

// model is the requested model.
const model = "claude-sonnet-4-5"

// mark is in each message of a body. Its digits make the message unique.
const (
	mark       = "note 00000000"
	markDigits = 8
)

// Body is a request of the Messages API that can be sent many times, each time slightly different and of
// the same length.
type Body struct {
	bytes []byte
	marks []int // where the digits of each message begin
}

type message struct {
	Role    string  `json:"role"`
	Content []block `json:"content"`
}

type block struct {
	Type    string            `json:"type"`
	Text    string            `json:"text,omitempty"`
	ID      string            `json:"id,omitempty"`
	Name    string            `json:"name,omitempty"`
	Input   map[string]string `json:"input,omitempty"`
	Call    string            `json:"tool_use_id,omitempty"`
	Content string            `json:"content,omitempty"`
}

type request struct {
	Model     string    `json:"model"`
	MaxTokens int       `json:"max_tokens"`
	Stream    bool      `json:"stream,omitempty"`
	System    []block   `json:"system"`
	Messages  []message `json:"messages"`
}

// NewBody returns an agent's conversation of about size bytes: typed messages, tool calls with their
// results, answers. The same seed gives the same conversation.
func NewBody(seed uint64, size int, stream bool) (Body, error) {
	writer := newWriter(seed)
	conversation := request{
		Model:     model,
		MaxTokens: 4096,
		Stream:    stream,
		System:    []block{{Type: "text", Text: writer.prose(min(12_000, size/6))}},
	}
	room := size - len(conversation.System[0].Text) - 400
	opening := min(300, max(40, room/2))
	first := message{Role: "user", Content: []block{{Type: "text", Text: mark + ": " + writer.prose(opening)}}}
	conversation.Messages = append(conversation.Messages, first, writer.answer(opening))
	room -= 2*opening + 200
	for room > 0 {
		turn := writer.turn(room)
		conversation.Messages = append(conversation.Messages, turn...)
		encoded, err := json.Marshal(turn)
		if err != nil {
			return Body{}, fmt.Errorf("encode a turn: %w", err)
		}
		room -= len(encoded)
	}
	last := message{Role: "user", Content: []block{{Type: "text", Text: "Please go on, " + mark}}}
	conversation.Messages = append(conversation.Messages, last)

	encoded, err := json.Marshal(conversation)
	if err != nil {
		return Body{}, fmt.Errorf("encode the conversation: %w", err)
	}
	body := Body{bytes: encoded}
	for at := 0; ; {
		next := bytes.Index(encoded[at:], []byte(mark))
		if next < 0 {
			return body, nil
		}
		at += next + len(mark)
		body.marks = append(body.marks, at-markDigits)
	}
}

// Client is one client that sends variants of a body.
type Client struct {
	body    Body
	novelty Novelty
	session string
	buffer  []byte
}

// NewClient returns a client with requests of a novelty.
func NewClient(body Body, novelty Novelty) *Client {
	return &Client{body: body, novelty: novelty, session: uuid.NewString()}
}

// Next returns the client's next request and the name of its session. number must be unique. The bytes are
// valid until the next call.
func (c *Client) Next(number int) (request []byte, session string) {
	digits := fmt.Sprintf("%0*d", markDigits, number)
	if c.novelty == NextTurn && c.buffer != nil {
		c.buffer = append(c.buffer[:len(c.buffer)-len(listEnd)], nextTurn...)
		c.buffer = append(append(append(c.buffer, digits...), turnEnd...), listEnd...)
		return c.buffer, c.session
	}

	c.buffer = append(c.buffer[:0], c.body.bytes...)
	marks := c.body.marks
	switch c.novelty {
	case NextTurn, NewestMessage:
		marks = marks[len(marks)-1:]
	case FirstMessage:
		copy(c.buffer[marks[0]:], digits)
		marks = marks[len(marks)-1:]
		c.session = uuid.NewString()
	case EveryMessage:
		c.session = uuid.NewString()
	}
	for _, at := range marks {
		copy(c.buffer[at:], digits)
	}

	return c.buffer, c.session
}

// The part that a session's next request adds to the one before: an answer and the message after it. The
// list of messages is the last member of a body.
const (
	listEnd  = `]}`
	nextTurn = `,{"role":"assistant","content":[{"type":"text","text":"Done, what next?"}]}` +
		`,{"role":"user","content":[{"type":"text","text":"Please go on, note `
	turnEnd = `"}]}`
)

// writer writes text similar to agents' requests.
type writer struct {
	random *rand.Rand
	words  []string
}

func newWriter(seed uint64) *writer {
	const words = "the proxy keeps older turns in archive and sends model a shorter history so next answer still sees what matters " +
		"request handler returns error when context deadline exceeded while reading response from upstream provider session " +
		"please check why test fails after change in configuration file before we merge this branch into main again"

	return &writer{random: rand.New(rand.NewPCG(seed, 7)), words: strings.Fields(words)} //nolint:gosec // the same text each time is the point
}

func (w *writer) word() string { return w.words[w.random.IntN(len(w.words))] }

func (w *writer) prose(size int) string {
	var text strings.Builder
	for text.Len() < size {
		text.WriteString(w.word())
		if w.random.IntN(12) == 0 {
			text.WriteString(".\n")
		} else {
			text.WriteByte(' ')
		}
	}

	return text.String()
}

// code returns numbered lines similar to a program.
func (w *writer) code(size int) string {
	var text strings.Builder
	for line := 1 + w.random.IntN(300); text.Len() < size; line++ {
		fmt.Fprintf(&text, "%6d\t\tif %s, err := %s.%s(ctx, %q, %d); err != nil {\n",
			line, w.word(), w.word(), w.word(), w.word(), w.random.IntN(10_000))
	}

	return text.String()
}

// log returns lines similar to a log.
func (w *writer) log(size int) string {
	var text strings.Builder
	for text.Len() < size {
		fmt.Fprintf(&text, "2026-03-%02dT%02d:%02d:%02dZ level=info msg=%q id=%08x took=%dms\n",
			1+w.random.IntN(28), w.random.IntN(24), w.random.IntN(60), w.random.IntN(60),
			w.word()+" "+w.word(), w.random.Uint32(), w.random.IntN(900))
	}

	return text.String()
}

func (w *writer) answer(size int) message {
	return message{Role: "assistant", Content: []block{{Type: "text", Text: mark + ": " + w.prose(size)}}}
}

// turn returns a typed message, one to six tool calls with results, and an
// answer, of at most about room bytes.
func (w *writer) turn(room int) []message {
	turn := []message{{Role: "user", Content: []block{{Type: "text", Text: mark + ": " + w.prose(min(room/3+1, 80+w.random.IntN(500)))}}}}
	for calls := w.random.IntN(6); calls >= 0 && room > 1500; calls-- {
		id := fmt.Sprintf("toolu_%016x%06x", w.random.Uint64(), w.random.IntN(1<<24))
		size := min(room-1000, 24_000, 150+int(w.random.ExpFloat64()*2600))
		call := block{Type: "tool_use", ID: id, Name: "Read", Input: map[string]string{"file_path": "/src/app/" + w.word() + ".go"}}
		result := block{Type: "tool_result", Call: id, Content: mark + "\n" + w.code(size)}
		if w.random.IntN(3) == 0 {
			call.Name, call.Input = "Bash", map[string]string{"command": "go test ./" + w.word() + "/..."}
			result.Content = mark + "\n" + w.log(size)
		}
		said := block{Type: "text", Text: mark + ": " + w.prose(40+w.random.IntN(260))}
		turn = append(turn,
			message{Role: "assistant", Content: []block{said, call}},
			message{Role: "user", Content: []block{result}})
		room -= size + 700
	}

	return append(turn, w.answer(min(room/3+1, 100+w.random.IntN(900))))
}
