package redaction_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"palimpsest/tenants"
	"palimpsest/tenants/redaction"
)

// everything redacts every kind, and two names.
func everything() *redaction.Redactor {
	return redaction.New(tenants.Redaction{Kinds: tenants.RedactionKinds(), Names: []string{"Grace Hopper", "José"}}, []byte("key"))
}

// plainly returns a text with placeholders without their tags.
func plainly(text string) string {
	return regexp.MustCompile(`\[(name|email|card|phone|key)-[a-z2-7]{6}\]`).ReplaceAllString(text, "[$1]")
}

func TestPersonalDataIsReplacedAndNothingElse(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Write to ada@example.com, please.":                                     "Write to [email], please.",
		"mailto:Ada.Lovelace+x@mail.example.co.uk":                              "mailto:[email]",
		"ops@db.internal and jörg@müller.de":                                    "[email] and [email]",
		"?to=ada@example.com&x=1":                                               "?to=[email]&x=1",
		"git clone git@github.com:a/b.git":                                      "git clone git@github.com:a/b.git",
		"icon@2x.png lodash@4.17.21 @app.route root@host":                       "icon@2x.png lodash@4.17.21 @app.route root@host",
		"https://u:p4ss@example.com/x":                                          "https://[key]@example.com/x",
		"Ada Lovelace <ada@example.com> wrote":                                  "[name] <[email]> wrote",
		`"Lovelace, Ada" <ada@example.com>`:                                     `"[name]" <[email]>`,
		"Author: Ada King-Noel <ada@example.com>":                               "Author: [name] <[email]>",
		"Ask GRACE  hopper or José, not Josés or Grace":                         "Ask [name] or [name], not Josés or Grace",
		"4111 1111 1111 1111, 4111-1111-1111-1111":                              "[card], [card]",
		"4111111111111111 378282246310005 30569309025904":                       "[card] [card] [card]",
		"3782 822463 10005":                                                     "[card]",
		"4111 1111 1111 1112 x4111111111111111 1764000000":                      "4111 1111 1111 1112 x4111111111111111 1764000000",
		"Call +49 30 901820 or +1 (212) 555-0123.":                              "Call [phone] or [phone].",
		"0049 30 901820; (212) 555-0123; 212-555-0123":                          "[phone]; [phone]; [phone]",
		"Phone: 030 901820, tel. 020 7946 0958":                                 "Phone: [phone], tel. [phone]",
		"2026-11-29T12:00:00+0100, 1+4915123456789, 10.0.0.1, 123-456-7890-1":   "2026-11-29T12:00:00+0100, 1+4915123456789, 10.0.0.1, 123-456-7890-1",
		"lines 1200-1300, 030 901820, v1.2.3-4":                                 "lines 1200-1300, 030 901820, v1.2.3-4",
		"export K=sk-abcd1234efgh AKIAABCDEFGHIJKLMNOP":                         "export K=[key] [key]",
		`{"password": "hunter2", "max_tokens": 12}`:                             `{"password": "[key]", "max_tokens": 12}`,
		"GET /x?api_key=abc&a=b":                                                "GET /x?api_key=[key]&a=b",
		"-----BEGIN RSA PRIVATE KEY-----\nab-c\n-----END RSA PRIVATE KEY-----.": "[key].",
		"019a1234-0000-7000-8000-00000000abcd":                                  "019a1234-0000-7000-8000-00000000abcd",
		"":                                                                      "",
	} {
		got := everything().Text(text)
		if plainly(got) != want {
			t.Errorf("%s\nbecomes %s\nwant    %s", text, plainly(got), want)
		}
		if again := everything().Text(got); again != got {
			t.Errorf("redacting %s again makes %s", got, again)
		}
	}
}

func TestOnlyKindsThatAreOnAreReplaced(t *testing.T) {
	t.Parallel()
	const text = "José <jose@example.com>, +49 30 901820, 4111111111111111, sk-abcd1234"
	for kind, want := range map[tenants.RedactionKind]string{
		tenants.RedactNames:  "[name] <jose@example.com>, +49 30 901820, 4111111111111111, sk-abcd1234",
		tenants.RedactEmails: "José <[email]>, +49 30 901820, 4111111111111111, sk-abcd1234",
		tenants.RedactCards:  "José <jose@example.com>, +49 30 901820, [card], sk-abcd1234",
		tenants.RedactPhones: "José <jose@example.com>, [phone], 4111111111111111, sk-abcd1234",
		tenants.RedactKeys:   "José <jose@example.com>, +49 30 901820, 4111111111111111, [key]",
	} {
		one := redaction.New(tenants.Redaction{Kinds: []tenants.RedactionKind{kind}, Names: []string{"José"}}, []byte("key"))
		if got := plainly(one.Text(text)); got != want {
			t.Errorf("%s\nbecomes %s\nwant    %s", kind, got, want)
		}
	}
	off := redaction.New(tenants.Redaction{Names: []string{"José"}}, []byte("key"))
	if raw, found := off.JSON([]byte(`"José"`)); off != nil || off.Text(text) != text || string(raw) != `"José"` || found != nil {
		t.Error("a workspace without kinds is redacted")
	}
}

// Two people stay two people, in every message, and another workspace's tags say nothing of them.
func TestTheSamePieceHasTheSameTag(t *testing.T) {
	t.Parallel()
	r := everything()
	other := redaction.New(tenants.Redaction{Kinds: tenants.RedactionKinds()}, []byte("other key"))
	if r.Text("Ada@Example.com") != r.Text("ada@example.com") || r.Text("+49 30 901820") != r.Text("0049 30 901820") {
		t.Error("one piece has two tags")
	}
	if r.Text("ada@example.com") == r.Text("ida@example.com") || r.Text("ada@example.com") == other.Text("ada@example.com") {
		t.Error("two pieces have one tag")
	}
}

func TestTextsOfMessagesAreRedactedAndTheProtocolStays(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`"mail ada@example.com"`: `"mail [email]"`,
		`{"role":"user","content":[{"type":"text","text":"I am \"Ada\" <ada\u0040example.com>\n"}]}`: `{"role":"user","content":[{"type":"text","text":"I am \"[name]\" <[email]>\n"}]}`,
		// What Ada is called is known from the second block.
		`{"content":[{"text":"ask Ada King"},{"text":"Ada King <ada@example.com>"}]}`:                                                                `{"content":[{"text":"ask [name]"},{"text":"[name] <[email]>"}]}`,
		`{"role": "user", "name": "ada", "content": "hi"}`:                                                                                           `{"role": "user", "name": "[name]", "content": "hi"}`,
		`{"role":"assistant","tool_calls":[{"id":"a@b.com","function":{"name":"Grace Hopper","arguments":"{\"to\":\"a@b.com\",\"token\":\"t\"}"}}]}`: `{"role":"assistant","tool_calls":[{"id":"a@b.com","function":{"name":"Grace Hopper","arguments":"{\"to\":\"[email]\",\"token\":\"[key]\"}"}}]}`,
		`{"type":"tool_use","id":"x","name":"send","input":{"name":"José","id":"a@b.com","password":"p","data":["+49 30 901820"]}}`:                  `{"type":"tool_use","id":"x","name":"send","input":{"name":"[name]","id":"[email]","password":"[key]","data":["[phone]"]}}`,
		`{"source":{"type":"base64","media_type":"image/png","data":"a@b.com"},"url":"data:a@b.com","signature":"a@b.com","thinking":"a@b.com"}`:     `{"source":{"type":"base64","media_type":"image/png","data":"a@b.com"},"url":"data:a@b.com","signature":"a@b.com","thinking":"[email]"}`,
		`{ "n" : 4111111111111111, "b": [true , null, "<&>"] }`:                                                                                      `{ "n" : 4111111111111111, "b": [true , null, "<&>"] }`,
	} {
		got, found := everything().JSON([]byte(raw))
		if plainly(string(got)) != want || !json.Valid(got) {
			t.Errorf("%s\nbecomes %s\nwant    %s", raw, plainly(string(got)), want)
		}
		pieces := 0
		for _, count := range found {
			pieces += count
		}
		if pieces != strings.Count(want, "[name]")+strings.Count(want, "[email]")+strings.Count(want, "[phone]")+strings.Count(want, "[key]") {
			t.Errorf("%s: %v", want, found)
		}
		again, more := everything().JSON(got)
		if string(again) != string(got) || len(more) > 0 {
			t.Errorf("redacting %s again makes %s, %v", got, again, more)
		}
	}
}

// Whatever a text is: redacting it again changes nothing, and a message stays valid JSON.
func FuzzRedactingTwiceIsRedactingOnce(f *testing.F) {
	for _, seed := range []string{"Ada <ada@example.com> +49 30 901820", `"token": "x"`, "://a:b@c ?key=d Grace Hopper", "4111 1111 1111 1111 2"} {
		f.Add(seed)
	}
	r := everything()
	f.Fuzz(func(t *testing.T, text string) {
		once := r.Text(text)
		if again := r.Text(once); again != once {
			t.Fatalf("%q becomes %q, then %q", text, once, again)
		}
		raw, err := json.Marshal(map[string]any{"content": text, "input": map[string]string{"a": text}})
		if err != nil {
			t.Skip()
		}
		if redacted, _ := r.JSON(raw); !json.Valid(redacted) {
			t.Fatalf("%s becomes %s", raw, redacted)
		}
	})
}

// However many pieces a message has, the time grows with its length.
func TestMessageFullOfPersonalDataIsRedactedInLinearTime(t *testing.T) {
	t.Parallel()
	const pieces = 10_000
	raw, err := json.Marshal(map[string]string{"content": strings.Repeat("Ada King <ada@example.com> 1 2 3 4111111111111111 sk-abcd1234 José; ", pieces)})
	if err != nil {
		t.Fatal(err)
	}
	_, found := everything().JSON(raw)
	if found["email"] != pieces || found["card"] != pieces || found["key"] != pieces || found["name"] != 2*pieces {
		t.Errorf("found %v", found)
	}
}

func BenchmarkRedactMessage(b *testing.B) {
	var text strings.Builder
	for text.Len() < 1<<20 {
		text.WriteString("2026-11-29 12:00:00 INFO func (s *Server) handle(w http.ResponseWriter, id int) error { return nil } // line 1234\n")
	}
	text.WriteString("Ada Lovelace <ada@example.com>, +49 30 901820")
	raw, err := json.Marshal(map[string]string{"role": "user", "content": text.String()})
	if err != nil {
		b.Fatal(err)
	}
	for _, kind := range append(tenants.RedactionKinds(), "") {
		kinds, name := []tenants.RedactionKind{kind}, string(kind)
		if kind == "" {
			kinds, name = tenants.RedactionKinds(), "all"
		}
		r := redaction.New(tenants.Redaction{Kinds: kinds, Names: []string{"Grace Hopper", "José"}}, []byte("key"))
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(raw)))
			for b.Loop() {
				r.JSON(raw)
			}
		})
	}
}
