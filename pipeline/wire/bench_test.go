package wire_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
	"palimpsest/pipeline/wire/anthropic"
)

// large returns an Anthropic body of about 800 KB with code in its tool results.
func large() []byte {
	code := strings.Repeat("\\tif err != nil {\\n\\t\\treturn fmt.Errorf(\\\"open %s: %w\\\", name, err)\\n\\t}\\n", 60)
	var list strings.Builder
	for i := range 160 {
		if i > 0 {
			list.WriteByte(',')
		}
		fmt.Fprintf(&list, `{"role":"user","content":[{"type":"text","text":"step %d"}]},`, i)
		fmt.Fprintf(&list, `{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"toolu_%d","name":"Read","input":{"path":"a/b/%d.go","limit":200}}]},`, i, i)
		fmt.Fprintf(&list, `{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_%d","content":"%s"}]}`, i, code)
	}
	return []byte(`{"model":"m","max_tokens":4096,"system":[{"type":"text","text":"s"}],"messages":[` + list.String() + `],"stream":true}`)
}

func BenchmarkOpen(b *testing.B) {
	body := large()
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := wire.Open(body, "messages"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkSealProjection(b *testing.B) {
	body := large()
	envelope, err := wire.Open(body, "messages")
	if err != nil {
		b.Fatal(err)
	}
	pieces := []wire.Piece{{From: 0, To: 400, Raw: json.RawMessage(`{"role":"user","content":"short"}`)}, {From: 400, To: envelope.Len()}}
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		envelope.Seal(pieces)
	}
}

func BenchmarkParse(b *testing.B) {
	envelope, err := wire.Open(large(), "messages")
	if err != nil {
		b.Fatal(err)
	}
	codec := anthropic.New()
	b.SetBytes(int64(len(envelope.Body())))
	b.ReportAllocs()
	for b.Loop() {
		for i := range envelope.Len() {
			if _, err := codec.Parse(envelope.Element(i)); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkDigest(b *testing.B) {
	envelope, err := wire.Open(large(), "messages")
	if err != nil {
		b.Fatal(err)
	}
	codec := anthropic.New()
	count := func(conversation.Message) int { return 1 }
	b.SetBytes(int64(len(envelope.Body())))
	b.ReportAllocs()
	for b.Loop() {
		for i := range envelope.Len() {
			if _, err := wire.Digest(codec, envelope.Element(i), count); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkTapOneEvent(b *testing.B) {
	event := []byte("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" a word\"}}\n\n")
	tap := anthropic.New().Tap(true)
	_, _ = tap.Write([]byte("event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"))
	b.SetBytes(int64(len(event)))
	b.ReportAllocs()
	for b.Loop() {
		_, _ = tap.Write(event)
	}
}
