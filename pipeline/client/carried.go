package client

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

// Carried is the recorded thread that palimpsest resume continued in a new conversation.
type Carried struct {
	Client  string // client of the recorded thread
	Session uuid.UUID
	Thread  uuid.UUID
	Last    int // last message of the thread that was carried over
}

// carriedWords start the note in which palimpsest resume names the source of a conversation.
const carriedWords = "Palimpsest carried this conversation over from "

// carriedAmong is how many of a conversation's first messages may hold the note. Some clients put their own
// messages before the typed text.
const carriedAmong = 8

// Note returns the text before the first message of a carried-over conversation. It is a reminder, so that it
// does not become part of the conversation's title or identity.
func (c Carried) Note() string {
	return fmt.Sprintf(`<system-reminder>
%s%s: session %s, thread %s, messages 0 to %d.
Calls of tools that this client does not have stand in it as text, as [Tool call] and [Tool result]. Go on with the tools that you have, and do not write such text yourself.
</system-reminder>`, carriedWords, c.Client, c.Session, c.Thread, c.Last)
}

// CarriedFrom returns the thread that a conversation was carried over from. known is false if it wasn't.
func CarriedFrom(length int, message func(i int) (conversation.Message, error)) (carried Carried, known bool) {
	for i := range min(length, carriedAmong) {
		read, err := message(i)
		if err != nil || read.Role != conversation.User {
			continue
		}
		for j := range read.Blocks {
			if carried, known = readCarried(read.Blocks[j].Text); known {
				return carried, true
			}
		}
	}
	return Carried{}, false
}

func carriedForm() *regexp.Regexp {
	const id = `([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})`
	return regexp.MustCompile(`^([a-z-]{1,30}): session ` + id + `, thread ` + id + `, messages 0 to (\d{1,9})\.`)
}

// readCarried reads the note in a text.
func readCarried(text string) (Carried, bool) {
	if !strings.Contains(text, carriedWords) {
		return Carried{}, false
	}
	for _, reminder := range conversation.Reminders(text) {
		rest, opens := strings.CutPrefix(strings.TrimSpace(reminder), carriedWords)
		if !opens {
			continue
		}
		if parts := carriedForm().FindStringSubmatch(rest); parts != nil {
			last, _ := strconv.Atoi(parts[4]) // nine digits at most
			return Carried{Client: parts[1], Session: uuid.MustParse(parts[2]), Thread: uuid.MustParse(parts[3]), Last: last}, true
		}
	}
	return Carried{}, false
}
