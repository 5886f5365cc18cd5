package wiretest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"palimpsest/pipeline/conversation"
	"palimpsest/pipeline/wire"
)

// Run tests a format against the rules for all formats.
func Run(t *testing.T, codec wire.Codec, samples Samples) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, wire.Codec, Samples){
		"EachMessageIsUnderstood":                 testMessages,
		"UnchangedMessagesKeepTheirBytes":         testUnchanged,
		"UnchangedBodyIsTheSameBody":              testBody,
		"OneChangedMessageLeavesAllOthersAlone":   testOneChanged,
		"ChangedMessagesAreWrittenAsExpected":     testChanges,
		"NewMessagesAreWrittenAsExpected":         testNew,
		"TextsComeLastInAMessage":                 testAppend,
		"TextsComeBehindTheSystemPrompt":          testInstruct,
		"MessagesThatSayTheSameHaveOneIdentity":   testSame,
		"SpellingMakesNoDifferenceToIdentity":     testSpelling,
		"MessagesThatSayOtherThingsDiffer":        testDistinct,
		"WhatIsNoMessageIsRefused":                testNoMessage,
		"RequestsAreRead":                         testRequests,
		"BadRequestsAreRefusedWithTheMembersName": testFaults,
		"AnswersAreRead":                          testAnswers,
		"AnswersAreReadHoweverTheyAreCut":         testCuts,
		"CutOffAnswersHaveNoMessages":             testCutOff,
		"ErrorsSpeakTheClientsDialect":            testProblem,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, codec, samples)
		})
	}
}

// Describe returns a parsed block as one line.
func Describe(block conversation.Block) string {
	parts := []string{string(block.Kind)}
	for _, part := range []string{block.ID, block.Name} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if block.IsError {
		parts = append(parts, "error")
	}
	if block.Text != "" {
		parts = append(parts, fmt.Sprintf("%q", block.Text))
	}
	for _, media := range block.Media {
		parts = append(parts, fmt.Sprintf("[%s %d]", media.Type, media.Size))
	}
	return strings.Join(parts, " ")
}

func testMessages(t *testing.T, codec wire.Codec, samples Samples) {
	t.Helper()
	for _, sample := range samples.Messages {
		message := parse(t, codec, sample.Raw)
		if message.Role != sample.Role {
			t.Errorf("%s: role %q, want %q", sample.Name, message.Role, sample.Role)
		}
		if flags := message.Flags(); flags != sample.Flags {
			t.Errorf("%s: flags %010b, want %010b", sample.Name, flags, sample.Flags)
		}
		var blocks []string
		for _, block := range message.Blocks {
			blocks = append(blocks, Describe(block))
		}
		if !reflect.DeepEqual(blocks, sample.Blocks) {
			t.Errorf("%s:\n got %q\nwant %q", sample.Name, blocks, sample.Blocks)
		}
	}
}

// A11, W13.
func testUnchanged(t *testing.T, codec wire.Codec, samples Samples) {
	t.Helper()
	for _, sample := range samples.Messages {
		encoded, err := codec.Encode(parse(t, codec, sample.Raw))
		if err != nil || string(encoded) != sample.Raw {
			t.Errorf("%s: %v\n got %s\nwant %s", sample.Name, err, encoded, sample.Raw)
		}
		digest, err := wire.Digest(codec, json.RawMessage(sample.Raw), func(m conversation.Message) int { return len(m.Raw) })
		if err != nil {
			t.Errorf("%s: digest: %v", sample.Name, err)
		}
		want := conversation.Digest{
			Sum: sha256.Sum256([]byte(sample.Raw)), Identity: digest.Identity, Role: sample.Role, Flags: sample.Flags,
			Tokens: len(sample.Raw), Markers: digest.Markers, MarkerTTL: digest.MarkerTTL,
		}
		if digest != want {
			t.Errorf("%s: digest %+v, want %+v", sample.Name, digest, want)
		}
	}
}

// open opens a body with all sample messages and unusual spacing.
func open(t *testing.T, codec wire.Codec, samples Samples) *wire.Envelope {
	t.Helper()
	var list strings.Builder
	for _, sample := range samples.Messages {
		if strings.HasPrefix(sample.Raw, `"`) {
			continue // a list that is a string has no other elements
		}
		if list.Len() > 0 {
			list.WriteString(" ,\t")
		}
		list.WriteString(sample.Raw)
	}
	body := fmt.Sprintf(samples.Body, "[\n "+list.String()+"\r\n]")
	envelope, err := wire.Open([]byte(body), codec.List())
	if err != nil {
		t.Fatalf("open: %v in %s", err, body)
	}
	return envelope
}

// A11, W13, W26.
func testBody(t *testing.T, codec wire.Codec, samples Samples) {
	t.Helper()
	envelope := open(t, codec, samples)
	body := envelope.Body()
	for _, pieces := range [][]wire.Piece{
		{{From: 0, To: envelope.Len()}},
		{{From: 0, To: 1}, {From: 1, To: 1}, {From: 1, To: envelope.Len()}},
	} {
		sealed := envelope.Seal(pieces)
		if &sealed[0] != &body[0] || len(sealed) != len(body) {
			t.Errorf("an unchanged body was written again: %s", sealed)
		}
	}
}

// A2, A3, A5, A11, A12, A13, W13, W35: for every block of every message.
func testOneChanged(t *testing.T, codec wire.Codec, samples Samples) {
	t.Helper()
	const text = "cut \"short\" \u2028 é \U0001f600 </script>\n"
	envelope := open(t, codec, samples)
	for i := range envelope.Len() {
		sent := parse(t, codec, string(envelope.Element(i)))
		for j, block := range sent.Blocks {
			if block.Kind != conversation.Text && block.Kind != conversation.ToolResult && block.Kind != conversation.Media {
				continue
			}
			changed := sent
			changed.Replace(j, text)
			raw, err := codec.Encode(changed)
			if err != nil && sent.Flags().Has(conversation.HasOpaque) {
				continue
			}
			if err != nil {
				t.Errorf("message %d, block %d: %v", i, j, err)
				continue
			}
			checkChanged(t, codec, sent, raw, j, text)
			checkSealed(t, envelope, i, raw)
		}
	}
}

// checkChanged checks that only block j of a message has a new text.
func checkChanged(t *testing.T, codec wire.Codec, sent conversation.Message, raw json.RawMessage, j int, text string) {
	t.Helper()
	if !json.Valid(raw) {
		t.Errorf("not JSON: %s", raw)
		return
	}
	got := parse(t, codec, string(raw))
	if got.Role != sent.Role || len(got.Blocks) != len(sent.Blocks) {
		t.Errorf("%s\nbecame %s", sent.Raw, raw)
		return
	}
	for k := range got.Blocks {
		want := sent.Blocks[k]
		if k == j {
			want.Text, want.Media = text, nil
			if want.Kind == conversation.Media {
				want.Kind = conversation.Text
			}
		} else if !bytes.Equal(got.Blocks[k].Raw, want.Raw) && got.Blocks[k].Kind != conversation.ToolResult {
			t.Errorf("block %d: %s became %s", k, want.Raw, got.Blocks[k].Raw)
		}
		if Describe(got.Blocks[k]) != Describe(want) {
			t.Errorf("block %d of %s: %s, want %s", k, raw, Describe(got.Blocks[k]), Describe(want))
		}
	}
}

// checkSealed checks that a body differs from another one only in element i.
func checkSealed(t *testing.T, envelope *wire.Envelope, i int, raw json.RawMessage) {
	t.Helper()
	pieces := []wire.Piece{{From: 0, To: i}, {From: i, To: i + 1, Raw: raw}, {From: i + 1, To: envelope.Len()}}
	sealed := envelope.Seal(pieces)
	body, element := envelope.Body(), envelope.Element(i)
	start := 0
	for &body[start] != &element[0] { // elements share the body's memory
		start++
	}
	want := string(body[:start]) + string(raw) + string(body[start+len(element):])
	if string(sealed) != want {
		t.Errorf("element %d changed:\n got %s\nwant %s", i, sealed, want)
	}
}

func testChanges(t *testing.T, codec wire.Codec, samples Samples) {
	t.Helper()
	for _, sample := range samples.Changes {
		message := parse(t, codec, sample.Raw)
		message.Replace(sample.Block, sample.Text)
		raw, err := codec.Encode(message)
		if sample.Want == "" {
			if err == nil {
				t.Errorf("%s: not refused: %s", sample.Name, raw)
			}
			continue
		}
		if err != nil || string(raw) != sample.Want {
			t.Errorf("%s: %v\n got %s\nwant %s", sample.Name, err, raw, sample.Want)
		}
	}
}

func testNew(t *testing.T, codec wire.Codec, samples Samples) {
	t.Helper()
	for _, sample := range samples.New {
		raw, err := codec.Encode(sample.Message)
		if sample.Want == "" {
			if err == nil {
				t.Errorf("%s: not refused: %s", sample.Name, raw)
			}
			continue
		}
		if err != nil || string(raw) != sample.Want {
			t.Errorf("%s: %v\n got %s\nwant %s", sample.Name, err, raw, sample.Want)
		}
	}
}

func testNoMessage(t *testing.T, codec wire.Codec, _ Samples) {
	t.Helper()
	count := func(conversation.Message) int { return 0 }
	for _, raw := range []string{``, `1`, `[]`, `null`, `true`} {
		if _, err := codec.Parse(json.RawMessage(raw)); err == nil {
			t.Errorf("%q is no message", raw)
		}
	}
	for _, raw := range []string{`{"role":"user","content":"x"`, `{"role":"user","content":"\x"}`, `{"role":"user",}`} {
		if _, err := wire.Digest(codec, json.RawMessage(raw), count); err == nil {
			t.Errorf("%q is no JSON", raw)
		}
	}
}

func testProblem(t *testing.T, codec wire.Codec, samples Samples) {
	t.Helper()
	if got := codec.Error(Problem()); string(got) != samples.Problem {
		t.Errorf(" got %s\nwant %s", got, samples.Problem)
	}
}

func parse(t *testing.T, codec wire.Codec, raw string) conversation.Message {
	t.Helper()
	message, err := codec.Parse(json.RawMessage(raw))
	if err != nil {
		t.Fatalf("parse %s: %v", raw, err)
	}
	return message
}
