package tenants

import "fmt"

// The bounds of new passwords, in characters.
const (
	MinPassword = 12
	MaxPassword = 200
)

// PasswordHint returns the hint beside the field for a new password.
func PasswordHint() string {
	return fmt.Sprintf("%d characters or more, and not a common password. Several words are good.", MinPassword)
}
