package export_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/text"

	"palimpsest/pipeline/archive/export"
	"palimpsest/pipeline/conversation"
)

// said is a message that parse reads: blocks as they are.
func said(t *testing.T, blocks ...conversation.Block) []byte {
	t.Helper()
	raw, err := json.Marshal(blocks)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func parse(raw []byte) (conversation.Message, error) {
	var message conversation.Message
	err := json.Unmarshal(raw, &message.Blocks)
	return message, err
}

// transcript returns the transcript of a session whose one lane holds messages.
func transcript(t *testing.T, session export.Session, messages ...[]byte) string {
	t.Helper()
	m, like := setup()
	lane := uuid.New()
	m.add(lane, messages...)
	session.Workspace, session.ID, session.Projection = like.Workspace, like.ID, like.Projection
	session.Lanes = []export.Lane{{ID: lane, Kind: "main", Messages: len(messages)}}
	var out bytes.Buffer
	if err := export.Markdown(t.Context(), &out, m, session, parse); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// outside returns what of a transcript stands in no fence and no code span, and what
// stands in fences, as a Markdown parser sees them.
func outside(source string) (markup string, fenced []string) {
	document := goldmark.DefaultParser().Parse(text.NewReader([]byte(source)))
	var out strings.Builder
	_ = ast.Walk(document, func(node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch node := node.(type) {
		case *ast.CodeSpan:
			return ast.WalkSkipChildren, nil
		case *ast.FencedCodeBlock:
			var lines bytes.Buffer
			for i := range node.Lines().Len() {
				line := node.Lines().At(i)
				lines.Write(line.Value([]byte(source)))
			}
			fenced = append(fenced, strings.TrimSuffix(lines.String(), "\n"))
			return ast.WalkSkipChildren, nil
		case *ast.Text:
			out.Write(node.Value([]byte(source)))
			out.WriteByte('\n')
		case *ast.RawHTML, *ast.HTMLBlock, *ast.Link, *ast.Image, *ast.AutoLink, *ast.CodeBlock:
			fmt.Fprintf(&out, "<%s>", node.Kind())
		}
		return ast.WalkContinue, nil
	})
	return out.String(), fenced
}

// Nothing that someone said gets out of its fence, or out of the span of a name.
func TestNothingThatWasSaidIsMarkupOfATranscript(t *testing.T) {
	t.Parallel()
	corpus, err := os.ReadFile(filepath.Join("..", "..", "..", "web", "render", "testdata", "hostile.txt"))
	if err != nil {
		t.Fatal(err)
	}
	texts := append(strings.Split(strings.TrimSpace(string(corpus)), "\n"), string(corpus), "```\n# out\n```", "````\n~~~\n# out\n", "`````````", "~~~\nout\n~~~\n",
		"a\r```\r# out", "\u2028```\u2028# out", "\t```\n\t# out", "> ```\n# out", "```", "``` ```", "`", "", " ", "<!--", "</code></pre><script>", "\x00`\x00```\x00\n# out", "# out\n===\n---", "![out](https://evil.example)")
	for _, hostile := range texts {
		source := transcript(t, export.Session{Title: hostile, Client: hostile, Model: hostile},
			said(t, conversation.Block{Kind: conversation.Text, Text: hostile}, conversation.Block{Kind: conversation.Thinking, Text: hostile}),
			said(t, conversation.Block{Kind: conversation.ToolCall, ID: hostile, Name: hostile, Text: hostile}),
			said(t, conversation.Block{Kind: conversation.ToolResult, ID: hostile, Text: hostile, IsError: true, Media: []conversation.Attachment{{Type: hostile, Size: 3}}}),
			[]byte("no JSON "+hostile))
		markup, fenced := outside(source)
		if strings.Contains(markup, "<") || strings.Contains(markup, "out") || strings.Contains(markup, "alert") || strings.Contains(markup, "evil") {
			t.Errorf("%.60q: outside of fences stands %q", hostile, markup)
		}
		if headings := regexp.MustCompile(`\d · `).FindAllString(markup, -1); len(headings) != 4 {
			t.Errorf("%.60q: %d messages in\n%s", hostile, len(headings), source)
		}
		if want := map[bool]int{true: 1, false: 5}[hostile == ""]; len(fenced) != want {
			t.Errorf("%.60q: %d fences, want %d", hostile, len(fenced), want)
		}
		for _, inside := range fenced[:len(fenced)-1] {
			if clean := strings.NewReplacer("\x00", "\uFFFD").Replace(hostile); strings.TrimRight(inside, "\n") != strings.TrimRight(clean, "\n") && strings.TrimRight(inside, "\n") != strings.TrimRight(hostile, "\n") {
				t.Errorf("%.60q stands as %.60q", hostile, inside)
			}
		}
	}
}

// E2: a transcript says of each message who spoke, its level and its hash.
func TestATranscriptTellsLevelAndHashOfEachMessage(t *testing.T) {
	t.Parallel()
	m, session := setup()
	var out bytes.Buffer
	if err := export.Markdown(t.Context(), &out, m, session, parse); err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256([]byte(`{"role":"assistant","content":"three"}`))
	for _, want := range []string{"# Session `Fix the parser`", "### 1 · user · L2", "### 5 · user · L0", "SHA-256 `" + hex.EncodeToString(hash[:]) + "`", "```\nanother four\n```",
		"What is before message 3 stands in thread `" + session.Lanes[0].ID.String() + "`"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the transcript lacks %q:\n%s", want, out.String())
		}
	}
	if shared := strings.Count(out.String(), `{"role":"assistant","content":"three"}`); shared != 1 {
		t.Errorf("a message of both lanes stands there %d times", shared)
	}
	m.broken[sha256.Sum256([]byte("six"))] = true
	out.Reset()
	if err := export.Markdown(t.Context(), &out, m, session, parse); err != nil || !strings.Contains(out.String(), "**Damaged in the archive:**") || strings.Contains(out.String(), "\nsix\n") {
		t.Errorf("of the damaged message it says (%v)\n%s", err, out.String())
	}
}

// full takes some bytes and then no more.
type full struct{ left int }

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errors.New("full")
	}
	return len(p), nil
}

func TestATranscriptThatCannotBeWrittenSaysSo(t *testing.T) {
	t.Parallel()
	m, session := setup()
	if err := export.Markdown(t.Context(), &full{left: 700}, m, session, parse); err == nil {
		t.Error("no error")
	}
	if err := export.Markdown(t.Context(), &bytes.Buffer{}, &failing{memory: m}, session, parse); err == nil {
		t.Error("an archive that fails is no error")
	}
}

// E2, S31: a session's tar holds each original as a file and verifies without us.
func TestATarOfASessionHoldsEachOriginal(t *testing.T) {
	t.Parallel()
	m, session := setup()
	packed := func() []byte {
		var out bytes.Buffer
		b := export.NewBundle(&out, session.Workspace, at(0))
		if err := b.Originals(t.Context(), m, session); err != nil {
			t.Fatal(err)
		}
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	file := packed()
	if totals, faults := verifyBundle(t, file); len(faults) != 0 || totals.Files != 7 {
		t.Errorf("%+v, faults %v", totals, faults)
	}
	found := map[string]string{}
	for _, entry := range untar(t, file) {
		found[entry.name] = string(entry.content)
	}
	fork, lane := "originals/"+session.Lanes[1].ID.String(), "originals/"+session.Lanes[0].ID.String()
	if found[lane+"/000001-user.json"] != "\x00\xff\xfe not UTF-8" || found[fork+"/000003-user.json"] != "another four" {
		t.Errorf("the files are %q", found)
	}
	if _, has := found[fork+"/000002-user.json"]; has {
		t.Error("what the fork shares stands there twice")
	}
	entries := untar(t, file)
	entries[1].content = []byte("changed")
	if _, faults := verifyBundle(t, retar(t, entries)); len(faults) == 0 {
		t.Error("a changed original verifies")
	}
}
