package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"palimpsest/api/upstream/providerdouble"
	"palimpsest/pipeline/fulltest"
)

// speaker is an end user of an application that sends everything with one API key.
type speaker struct {
	*tenant

	number int
}

// secret is what only this end user has said.
func (s speaker) secret() string { return fmt.Sprintf("zebra%03dquartz", s.number) }

// thing is what this end user has spoken of.
func (s speaker) thing() string {
	return [...]string{"green", "wooden", "silver", "broken", "rented", "borrowed", "antique", "folding", "electric", "inherited"}[s.number%10] + " " +
		[...]string{"wallet", "piano", "bicycle", "telescope", "kayak"}[s.number/10%5]
}

// say sends a conversation in one of the three formats, and returns what reached the provider. The
// application names its user in the body, or in a header every second time. Every third
// conversation has the same session id for all of them.
func (s speaker) say(conversation int, texts ...string) string {
	s.t.Helper()
	header, id := map[string]string{}, fmt.Sprintf("user-%d", s.number)
	if conversation%2 == 0 {
		header["X-Palimpsest-User"] = id
	}
	if conversation%3 == 0 {
		header["X-Palimpsest-Session-Id"] = "support"
	}
	var messages []any
	for i, text := range texts {
		messages = append(messages, map[string]any{"role": [...]string{"user", "assistant"}[i%2], "content": text})
	}
	var path string
	body := map[string]any{}
	switch conversation / 50 % 3 {
	case 0:
		path, body["model"], body["max_tokens"], body["messages"] = "/v1/messages", "claude-sonnet-4-5", 100, messages
		body["metadata"] = map[string]any{"user_id": id}
	case 1:
		path, body["model"], body["messages"], body["user"] = "/v1/chat/completions", "gpt-4o", messages, id
	case 2:
		path, body["model"], body["input"], body["safety_identifier"] = "/v1/responses", "gpt-5.1", messages, id
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}
	response, answer := s.post(path, encoded, header)
	if response.StatusCode != http.StatusOK {
		s.t.Fatalf("status %d: %s", response.StatusCode, answer)
	}
	sent, _ := s.double.Last()
	return string(sent.Body)
}

// question asks for what was said of a thing earlier.
func question(number int, thing string) string {
	return fmt.Sprintf([...]string{
		"What was the code of my %s that I told you earlier?", "What did we say about the stolen %s before?",
		"As we discussed earlier, what is the code of my %s?", "What did I ask you to remember about my %s last time?",
	}[number%4], thing)
}

// S45: what one end user behind an API key has said reaches no other one's prompt, by default and in
// every scope below the workspace. In each it comes back to themselves.
func TestEndUsersBehindOneKeyShareNothing(t *testing.T) {
	t.Parallel()
	const users, few, conversations = 50, 20, 2000
	i := start(t, providerdouble.Config{})
	for _, scope := range []string{"", "key", "person", "project", "workspace"} {
		w := i.tenant("scope-" + scope)
		if scope != "" {
			w.setPipelinef("rehydrator: {scope: %s}", scope)
		}
		speakers := map[int]speaker{}
		told := 0
		for conversation := range fulltest.Part(conversations) {
			if scope != "" && told == few || told == 2*users && !fulltest.Everything() {
				break
			}
			told++
			s := speaker{w, told % users}
			speakers[s.number] = s
			s.say(conversation+told, fmt.Sprintf("My %s was stolen. Its code is %s, please remember it.", s.thing(), s.secret()),
				"I have noted the code.", "Thanks. What else can I do?")
		}
		for _, s := range speakers {
			w.until(func() bool {
				var hits struct{ Data []any }
				w.call(http.MethodGet, "/api/v1/search?q="+url.QueryEscape(s.secret()), nil, http.StatusOK, &hits)
				return len(hits.Data) > 0
			})
		}
		own, foreign := 0, 0
		for asked := range told {
			s := speakers[1+asked%min(told, users-1)]
			about, known := speakers[s.number+asked%2]
			if !known {
				about = s
			}
			sent := s.say(asked, question(asked/2, about.thing()))
			for number, other := range speakers {
				switch is := strings.Contains(sent, other.secret()); {
				case is && number == s.number:
					own++
				case is:
					foreign++
				}
			}
		}
		t.Logf("scope %q: %d prompts of %d with the end user's own words, %d with another's", scope, own, told, foreign)
		switch {
		case foreign > 0 && scope != "workspace":
			t.Errorf("scope %q: the words of another end user are in %d prompts", scope, foreign)
		case foreign == 0 && scope == "workspace":
			t.Error("the scope workspace brings no words of others: the test sees nothing")
		case own == 0:
			t.Errorf("scope %q: no own words come back", scope)
		}
	}
}

// S52: what an erased end user has said is found by no one and reaches no prompt, not even their own; others keep theirs.
func TestErasedEndUserIsGone(t *testing.T) {
	t.Parallel()
	w := start(t, providerdouble.Config{}).tenant("erasing")
	w.setPipelinef("rehydrator: {scope: key}")
	w.call(http.MethodPut, "/api/v1/settings", map[string]string{"end_users": "plain"}, http.StatusOK, nil)
	found := func(s speaker) bool {
		var hits struct{ Data []any }
		w.call(http.MethodGet, "/api/v1/search?q="+url.QueryEscape(s.secret()), nil, http.StatusOK, &hits)
		return len(hits.Data) > 0
	}
	gone, staying := speaker{w, 1}, speaker{w, 2}
	for _, s := range []speaker{gone, staying} {
		s.say(1, fmt.Sprintf("My %s was stolen. Its code is %s, please remember it.", s.thing(), s.secret()), "I have noted the code.", "Thanks. What else can I do?")
		w.until(func() bool { return found(s) })
	}
	asks := func(s speaker, conversation int) bool {
		return strings.Contains(s.say(conversation, question(0, s.thing())), s.secret())
	}
	if !asks(gone, 1) || !asks(staying, 1) {
		t.Fatal("nothing comes back before the erasure: the test sees nothing")
	}
	var sessions struct{ Data []struct{ ID string } }
	w.until(func() bool { // both requests are recorded
		w.call(http.MethodGet, "/api/v1/sessions?end_user=user-1", nil, http.StatusOK, &sessions)
		return len(sessions.Data) == 2
	})
	if file := w.shown("/api/v1/sessions/" + sessions.Data[0].ID + "/export"); !strings.Contains(string(file), `"end_user_name":"user-1"`) {
		t.Errorf("the export does not name the end user: %.600s", file)
	}
	var erased struct{ Sessions, Requests int }
	w.call(http.MethodDelete, "/api/v1/users/user-1", nil, http.StatusOK, &erased)
	if erased.Sessions != 2 || erased.Requests != 2 || found(gone) || !found(staying) {
		t.Errorf("erased %+v; the erased is found: %t, the other: %t", erased, found(gone), found(staying))
	}
	if asks(gone, 5) || !asks(staying, 5) {
		t.Error("the words of the erased come back, or those of the other do not")
	}
	w.call(http.MethodDelete, "/api/v1/users/none", nil, http.StatusOK, &erased)
	if erased.Sessions+erased.Requests != 0 {
		t.Errorf("of nobody: %+v", erased)
	}
}
