package pages_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"palimpsest/tenants"
	"palimpsest/web/webtest"
)

// talkOnce has a person begin a session of their own, and returns its page.
func talkOnce(person *webtest.Person, secret, text string) string {
	person.TalkOnce(secret, sessionWindow, "/v1/messages",
		`{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"`+text+`"},{"role":"assistant","content":"Yes."},{"role":"user","content":"Go on."}]}`, claudeCode)
	return "/sessions/" + person.Newest().ID.String()
}

// S3: who may not read a session sees no comment on it, no title in the answer to a star, and neither comments nor takes
// a comment back.
func TestCommentsAreForWhoMayReadTheSession(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	owner := product.SignUp(t, "northbeam")
	at := talkOnce(owner, owner.Connect(webtest.Provider(t, sessionWindow), "laptop"), "a private question")
	session := uuid.MustParse(strings.TrimPrefix(at, "/sessions/"))
	if page := owner.Post(at+"/comments", "text", "a private remark"); !strings.Contains(page.TestID("comments"), "a private remark") {
		t.Fatalf("the owner's comment led to %s with %d", page.Path, page.Status)
	}
	if page := owner.PostPart(at+"/star", "starred", "true"); !strings.Contains(page.HTML, "a private question") {
		t.Errorf("the owner's star is %s", page.HTML)
	}
	comments := func() []tenants.Comment {
		t.Helper()
		found, err := product.DB.Comments.Comments(t.Context(), owner.Workspace.ID, session)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	member := blind(owner)
	if page := member.Get(at); page.Status != http.StatusOK || strings.Contains(page.HTML, "private") {
		t.Errorf("status %d, the page shows %q", page.Status, page.TestID("comments"))
	}
	if star := member.PostPart(at+"/star", "starred", "true"); star.Status != http.StatusOK || strings.Contains(star.HTML, "private") {
		t.Errorf("the star is %d %s", star.Status, star.HTML)
	}
	own, err := product.DB.Comments.AddComment(t.Context(), owner.Workspace.ID, tenants.Comment{Session: session, Author: member.User.ID, Text: "From when I could read it."})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{at + "/comments", at + "/comments/" + own.ID.String() + "/delete"} {
		if page := member.Post(path, "text", "unread"); page.Status != http.StatusForbidden {
			t.Errorf("%s leads a member to %s with %d", path, page.Path, page.Status)
		}
	}
	if left := comments(); len(left) != 2 {
		t.Errorf("the session has %d comments, want 2: %+v", len(left), left)
	}
}

// A thread shows the comments on the messages that it shares with the thread that it came from,
// and none on those that it does not.
func TestForkShowsCommentsOnWhatItShares(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	owner := product.SignUp(t, "northbeam")
	secret := owner.Connect(webtest.Provider(t, sessionWindow), "laptop")
	for _, last := range []string{"Which one?", "Why?"} {
		owner.Exchange(secret, sessionWindow, "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[{"role":"user","content":"Does it build?"},
			{"role":"assistant","content":"No."},{"role":"user","content":"`+last+`"}]}`, "X-Palimpsest-Session-Id", "one")
	}
	overview := owner.Newest()
	detail, err := product.Sessions.Browser().Session(tenants.OwnWork(t.Context()), owner.Workspace.ID, overview.ID)
	if err != nil || len(detail.Lanes) != 2 {
		t.Fatalf("%d threads, %v", len(detail.Lanes), err)
	}
	fork := detail.Lanes[0]
	if fork.Parent != detail.Lanes[1].ID || fork.ForkAt == 0 {
		t.Fatalf("the newest thread came from %s at %d", fork.Parent, fork.ForkAt)
	}
	shared, own := "&m="+itoa(fork.ForkAt-1), "&m="+itoa(fork.ForkAt)
	for _, message := range []int{fork.ForkAt - 1, fork.ForkAt} {
		said := tenants.Comment{Session: overview.ID, Lane: fork.Parent, Message: message, Author: owner.User.ID, Text: "Look."}
		if _, err := product.DB.Comments.AddComment(t.Context(), owner.Workspace.ID, said); err != nil {
			t.Fatal(err)
		}
	}
	at := "/sessions/" + overview.ID.String() + "?lane="
	for address, want := range map[string]string{
		at + fork.ID.String() + shared: "Comments 1", at + fork.ID.String() + own: "Comment",
		at + fork.Parent.String() + shared: "Comments 1", at + fork.Parent.String() + own: "Comments 1",
	} {
		if got := owner.Get(address).TestID("comment-here"); got != want {
			t.Errorf("%s says %q, want %q", address, got, want)
		}
	}
}

// S3: of two sessions that are compared both must be readable to show what was said, and sessions
// that are offered have no title that may not be read.
func TestComparingShowsNothingOfWhatOneMayNotRead(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	owner := product.SignUp(t, "northbeam")
	double := webtest.Provider(t, sessionWindow)
	theirs := talkOnce(owner, owner.Connect(double, "laptop"), "a private question")
	member := owner.Colleague(tenants.Admin)
	own := talkOnce(member, member.Connect(double, "desk"), "my own question")
	id := func(address string) string { return strings.TrimPrefix(address, "/sessions/") }
	for _, pair := range [][2]string{{id(own), id(theirs)}, {id(theirs), id(own)}} {
		if page := owner.Get("/sessions/compare?a=" + pair[0] + "&b=" + pair[1]); !strings.Contains(page.TestID("parting"), "a private question") {
			t.Errorf("the owner reads %q", page.TestID("parting"))
		}
	}
	blind(owner) // from now on each reads their own
	for _, pair := range [][2]string{{id(own), id(theirs)}, {id(theirs), id(own)}} {
		page := member.Get("/sessions/compare?a=" + pair[0] + "&b=" + pair[1])
		if page.Status != http.StatusOK || strings.Contains(page.HTML, "private") || !strings.Contains(page.TestID("parting"), "does not let you read both") {
			t.Errorf("status %d: %q", page.Status, page.TestID("parting"))
		}
	}
	if page := member.Get("/sessions/compare?a=" + id(own)); !strings.Contains(page.HTML, id(theirs)) || strings.Contains(page.HTML, "private") {
		t.Errorf("sessions that are offered: %q", page.TestID("offers"))
	}
	if page := member.Get("/sessions/compare?id=" + id(own) + "&id=" + id(theirs) + "&id=" + id(theirs)); strings.Contains(page.HTML, "private") {
		t.Errorf("of three that were ticked: %q", page.TestID("offers"))
	}
}

// S3: who may not read a session changes nothing of what is sent of it, and finds nothing in it.
func TestSessionIsChangedAndSearchedByItsReaders(t *testing.T) {
	t.Parallel()
	product := webtest.Start(t)
	owner := product.SignUp(t, "northbeam")
	at := talkOnce(owner, owner.Connect(webtest.Provider(t, sessionWindow), "laptop"), "Where do the marmots whistle?")
	if n, err := product.Index.IndexPending(t.Context(), 1000); err != nil || n == 0 {
		t.Fatalf("%d threads were indexed: %v", n, err)
	}
	member := blind(owner)
	for _, action := range []string{"pin", "release", "restore", "compact"} {
		if page := member.Post(at+"/"+action, "m", "0"); page.Status != http.StatusForbidden {
			t.Errorf("%s leads a member to %s with %d", action, page.Path, page.Status)
		}
	}
	if page := member.Get(at + "/compact"); page.Status != http.StatusForbidden {
		t.Errorf("a member is asked how to compact it: %d", page.Status)
	}
	partial := []string{"HX-Request", "true", "HX-Request-Type", "partial"}
	if found := owner.Get(at+"/find?q=marmots", partial...); !strings.Contains(found.HTML, "whistle") {
		t.Errorf("the owner finds %s", found.HTML)
	}
	if found := member.Get(at+"/find?q=marmots", partial...); found.Status != http.StatusOK || strings.Contains(found.HTML, "whistle") {
		t.Errorf("a member finds %d %s", found.Status, found.HTML)
	}
}
