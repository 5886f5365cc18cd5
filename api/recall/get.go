package recall

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"palimpsest/pipeline/archive"
	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/excerpts"
	"palimpsest/pipeline/session"
)

const (
	defaultBytes = 16_000
	minBytes     = 200
	maxBytes     = 100_000
	atOnce       = 16 // messages per read
)

type getInput struct {
	Pointer  string `json:"pointer"             jsonschema:"What to read: a pointer such as k7f2m7qa#12, or #12–#14 behind a name for several messages in a row. #12 alone is enough if session is given."`
	Session  string `json:"session,omitempty"   jsonschema:"Only within this session: its id, such as a hit of recall_search has, or its client's own id."`
	MaxBytes int    `json:"max_bytes,omitempty" jsonschema:"The most bytes of text to return, 16000 if left out."`
	Cursor   string `json:"cursor,omitempty"    jsonschema:"The next_cursor of the answer before, to read on where it stopped; with the same pointer."`
}

type getOutput struct {
	About      string          `json:"about"` // first in the JSON too
	Session    string          `json:"session"`
	Messages   []messageOutput `json:"messages"`
	NextCursor string          `json:"next_cursor,omitempty" jsonschema:"there is more: call again with this cursor"`
}

type messageOutput struct {
	Pointer string `json:"pointer"`
	Role    string `json:"role"`
	At      string `json:"at"`
	Text    string `json:"text"`
	Offset  int    `json:"offset"      jsonschema:"where text begins in the whole, in bytes"`
	Total   int    `json:"total_bytes" jsonschema:"of the whole"`
}

// addGet adds recall_get.
func (s *Server) addGet(server *mcp.Server) {
	mcp.AddTool(server, &mcp.Tool{
		Name: "recall_get", Annotations: reads("Read an earlier message"),
		Description: "Read original messages of the archive word for word: what the user typed, what you said, the arguments of a tool call, everything a tool returned. " +
			"Use it with a pointer such as k7f2m7qa#12, made of the archive's name and a message's number, both of which stand in the shortened parts of your prompt, or with a pointer from recall_search. " +
			"Images and other media are described, not returned. Long messages come in pages: call again with next_cursor.",
		InputSchema: schemaOf[getInput](func(properties map[string]*jsonschema.Schema) {
			atMost(properties, map[string]int{"pointer": 200, "session": 255, "cursor": 40})
			properties["max_bytes"].Minimum, properties["max_bytes"].Maximum = new(float64(minBytes)), new(float64(maxBytes))
		}),
	}, func(ctx context.Context, _ *mcp.CallToolRequest, input getInput) (*mcp.CallToolResult, getOutput, error) {
		return call(ctx, s, "recall_get", func(ctx context.Context, caller asker) (answer[getOutput], error) {
			return s.get(ctx, caller, input)
		})
	})
}

func (s *Server) get(ctx context.Context, caller asker, input getInput) (answer[getOutput], error) {
	none := answer[getOutput]{}
	pointer, err := archive.ParsePointer(input.Pointer)
	if err != nil {
		return none, refusal(fmt.Sprintf("%q is no pointer. Write the archive's name and the message's number, such as k7f2m7qa#12; recall_search returns pointers.", input.Pointer))
	}
	within, err := s.within(ctx, caller, input.Session)
	if err != nil {
		return none, err
	}
	if pointer.Name == "" && pointer.Lane == uuid.Nil && within == uuid.Nil {
		return none, refusal(fmt.Sprintf("%s does not say which archive is meant. Put the archive's name in front, such as k7f2m7qa%s, or give session.", pointer, pointer))
	}
	at, err := parseCursor(input.Cursor, pointer)
	if err != nil {
		return none, err
	}
	named, err := s.config.Lanes.Named(ctx, caller.workspace, caller.reader, within, pointer)
	if errors.Is(err, session.ErrNotFound) {
		return none, refusal(fmt.Sprintf("This workspace%s has no archive that %s points into and that this API key may read. Check the pointer, or find the message with recall_search.", limited(within), pointer))
	}
	if err != nil {
		return none, err
	}
	limit := input.MaxBytes
	if limit == 0 {
		limit = defaultBytes
	}
	page := &page{server: s, caller: caller, named: named, pointer: pointer, left: limit}
	if err := page.read(ctx, at); err != nil {
		return none, err
	}
	if len(page.messages) == 0 {
		return none, refusal(fmt.Sprintf("The archive holds no message %s. It may be newer than what is archived, or deleted.", pointer))
	}
	output := getOutput{About: found, Session: named.Session.String(), Messages: page.messages, NextCursor: page.next}
	return answer[getOutput]{output: output, text: output.text(), hits: len(page.messages)}, nil
}

func limited(within uuid.UUID) string {
	if within == uuid.Nil {
		return ""
	}
	return ", in session " + within.String() + ","
}

// place is where reading continues: a byte of a message's text.
type place struct{ message, offset int }

func (p place) cursor() string { return strconv.Itoa(p.message) + ":" + strconv.Itoa(p.offset) }

// parseCursor returns the place in a cursor; the pointer's beginning if it is "".
func parseCursor(cursor string, pointer archive.Pointer) (place, error) {
	if cursor == "" {
		return place{message: pointer.From}, nil
	}
	message, offset, _ := strings.Cut(cursor, ":")
	var at place
	var messageErr, offsetErr error
	at.message, messageErr = strconv.Atoi(message)
	at.offset, offsetErr = strconv.Atoi(offset)
	if messageErr != nil || offsetErr != nil || at.offset < 0 || at.message < pointer.From || at.message >= pointer.To {
		return place{}, refusal(fmt.Sprintf("%q is no cursor of %s. Use next_cursor of the answer before with the same pointer.", cursor, pointer))
	}
	return at, nil
}

// page collects the content of one answer.
type page struct {
	server   *Server
	caller   asker
	named    session.Named
	pointer  archive.Pointer
	left     int // bytes that still fit
	messages []messageOutput
	next     string
}

// read adds the pointer's messages from a place on, as many as fit.
func (p *page) read(ctx context.Context, at place) error {
	for from := at.message; from < p.pointer.To; from += atOnce {
		to := min(from+atOnce, p.pointer.To)
		entries, err := p.server.config.Archive.Originals(ctx, p.caller.workspace, p.named.Lane, from, to)
		if err != nil {
			return err
		}
		for i := range entries {
			offset := 0
			if entries[i].Index == at.message {
				offset = at.offset
			}
			if err := p.add(&entries[i], offset); err != nil || p.next != "" {
				return err
			}
		}
		if len(entries) == 0 { // the archive ends here; a single missing message does not hide later ones
			return nil
		}
	}
	return nil
}

// add adds a message from an offset on, or notes that it continues there.
func (p *page) add(entry *archive.Entry, offset int) error {
	text := p.server.read(p.named.Format, entry.Raw)
	if offset > len(text) {
		return refusal(fmt.Sprintf("The cursor is behind the end of message #%d, which has %d bytes.", entry.Index, len(text)))
	}
	rest := text[offset:]
	if p.left < min(len(rest), utf8.UTFMax) {
		p.next = place{message: entry.Index, offset: offset}.cursor()
		return nil
	}
	shown := excerpts.Bytes(rest, p.left)
	pointer := p.pointer
	pointer.From, pointer.To = entry.Index, entry.Index+1
	p.messages = append(p.messages, messageOutput{
		Pointer: pointer.String(), Role: string(entry.Role), At: stamp(entry.StoredAt), Text: shown, Offset: offset, Total: len(text),
	})
	p.left -= len(shown)
	if len(shown) < len(rest) {
		p.next = place{message: entry.Index, offset: offset + len(shown)}.cursor()
	}
	return nil
}

// text returns the messages in a form for models.
func (o *getOutput) text() string {
	text := &strings.Builder{}
	fmt.Fprintf(text, "%s\n", o.About)
	for i := range o.Messages {
		message := &o.Messages[i]
		fmt.Fprintf(text, "\n--- %s · %s · %s", message.Pointer, message.Role, message.At)
		if len(message.Text) < message.Total {
			fmt.Fprintf(text, " · bytes %d to %d of %d", message.Offset, message.Offset+len(message.Text), message.Total)
		}
		fmt.Fprintf(text, " ---\n%s\n", message.Text)
	}
	if o.NextCursor != "" {
		fmt.Fprintf(text, "\n--- there is more: call recall_get again with cursor %q ---", o.NextCursor)
	}
	return text.String()
}

// read returns a message as text: texts, arguments and results word for word, and a line for each other part.
// A message that can't be parsed is returned as it is.
func (s *Server) read(format conversation.Format, raw []byte) string {
	codec, known := s.config.Codecs[format]
	if !known {
		return strings.ToValidUTF8(string(raw), "�")
	}
	message, err := codec.Parse(raw)
	if err != nil {
		return strings.ToValidUTF8(string(raw), "�")
	}
	parts := make([]string, 0, len(message.Blocks))
	for i := range message.Blocks {
		if part := readBlock(&message.Blocks[i]); part != "" {
			parts = append(parts, part)
		}
	}
	return strings.ToValidUTF8(strings.Join(parts, "\n"), "�")
}

func readBlock(block *conversation.Block) string {
	switch block.Kind {
	case conversation.Text:
		return block.Text
	case conversation.Thinking:
		if block.Text == "" {
			return "[thinking, sealed by the provider]"
		}
		return "[thinking]\n" + block.Text
	case conversation.ToolCall:
		return fmt.Sprintf("[call %s of tool %s]\n%s", block.ID, block.Name, block.Text)
	case conversation.ToolResult:
		head := fmt.Sprintf("[result of call %s]", block.ID)
		if block.IsError {
			head = fmt.Sprintf("[result of call %s: an error]", block.ID)
		}
		return head + "\n" + block.Text + describe(block.Media)
	case conversation.Media:
		return strings.TrimPrefix(describe(block.Media), "\n")
	case conversation.Opaque:
		return fmt.Sprintf("[%s, %d bytes, not shown]", block.Name, len(block.Raw))
	default:
		return ""
	}
}

// describe returns a line for each attachment.
func describe(media []conversation.Attachment) string {
	var text strings.Builder
	for _, attachment := range media {
		size := ""
		if attachment.Size > 0 {
			size = fmt.Sprintf(", %d bytes", attachment.Size)
		}
		fmt.Fprintf(&text, "\n[%s%s, not shown]", attachment.Type, size)
	}
	return text.String()
}
