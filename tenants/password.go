package tenants

import "fmt"

// How long a password may be that a person sets, in characters.
const (
	MinPassword = 12
	MaxPassword = 200
)

// PasswordHint returns what a form says beside the field of a password that is set.
func PasswordHint() string {
	return fmt.Sprintf("%d characters or more, and not a common password. Several words are good.", MinPassword)
}
