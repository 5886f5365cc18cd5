package tenants

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// The bounds of scores and labels.
const (
	MaxNote   = 1000 // characters of a score's note
	MaxLabel  = 64   // characters
	MaxLabels = 20   // of one session
)

// Score is a member's opinion of a session. People who may read the session's text may read it.
type Score struct {
	ID      uuid.UUID // version 7: ordered by time
	Session uuid.UUID `gorm:"column:session_id"`
	Author  uuid.UUID `gorm:"column:user_id"` // uuid.Nil once they have left the workspace
	Name    string    `gorm:"column:email"`   // the author's address; "" once they have left
	Score   int       // 1 or -1
	Note    string    // plain, with secrets redacted
	At      time.Time `gorm:"column:scored_at"`
}

// Check returns Invalid for an invalid score.
func (s Score) Check() error {
	switch {
	case s.Score != 1 && s.Score != -1:
		return Invalid{Field: "score", Message: "must be 1 or -1"}
	case utf8.RuneCountInString(s.Note) > MaxNote:
		return Invalid{Field: "note", Message: fmt.Sprintf("must have at most %d characters; it has %d", MaxNote, utf8.RuneCountInString(s.Note))}
	case !utf8.ValidString(s.Note), strings.ContainsRune(s.Note, 0):
		return Invalid{Field: "note", Message: "must be text"}
	}
	return nil
}

// Label is a word that members put on sessions to find them again.
type Label struct {
	Session uuid.UUID `gorm:"column:session_id"`
	Label   string
	Author  uuid.UUID `gorm:"column:user_id"` // uuid.Nil once they have left the workspace
	At      time.Time `gorm:"column:labeled_at"`
}

// CheckLabel returns a label without space around it, or Invalid.
func CheckLabel(label string) (string, error) {
	label = strings.TrimSpace(label)
	isHidden := func(r rune) bool { return !unicode.IsPrint(r) }
	if length := utf8.RuneCountInString(label); length == 0 || length > MaxLabel || !utf8.ValidString(label) || strings.ContainsFunc(label, isHidden) {
		return "", Invalid{Field: "label", Message: fmt.Sprintf("must have 1 to %d printable characters", MaxLabel)}
	}
	return label, nil
}

// Judgment is what members think of a session.
type Judgment struct {
	Scores []Score  // oldest first
	Labels []string // in alphabetical order
}

// Count returns how many members gave a score.
func (j Judgment) Count(score int) int {
	count := 0
	for i := range j.Scores {
		if j.Scores[i].Score == score {
			count++
		}
	}
	return count
}

// Of returns a member's score, or the zero Score.
func (j Judgment) Of(person uuid.UUID) Score {
	for i := range j.Scores {
		if person != uuid.Nil && j.Scores[i].Author == person {
			return j.Scores[i]
		}
	}
	return Score{}
}
