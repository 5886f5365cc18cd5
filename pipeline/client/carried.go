package client

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"palimpsest/pipeline/conversation"
)

// Carried is the recorded thread that a conversation was carried over from, by palimpsest resume.
type Carried struct {
	Client  string // that the thread was recorded of
	Session uuid.UUID
	Thread  uuid.UUID
	Last    int // message of the thread that was carried over last
}

// carriedWords open the note in which palimpsest resume says what a conversation carries on.
const carriedWords = "Palimpsest carried this conversation over from "

// carriedAmong is how many of a conversation's first messages may hold the note: some clients put messages
// of their own before what was typed.
const carriedAmong = 8

// Note returns what stands in front of the first thing that is said in a conversation that was carried over. It
// is a reminder, so it is no part of the conversation's title and of its identity.
func (c Carried) Note() string {
	return fmt.Sprintf(`<system-reminder>
%s%s: session %s, thread %s, messages 0 to %d.
Calls of tools that this client does not have stand in it as text, as [Tool call] and [Tool result]. Go on with the tools that you have, and do not write such text yourself.
</system-reminder>`, carriedWords, c.Client, c.Session, c.Thread, c.Last)
}

// CarriedFrom returns what thread a conversation was carried over from. known is false if it was not.
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
