package components

// KeepKeys is the choice to keep the scope proxy of a leaving member's API keys.
const KeepKeys = "keep"

// KeyFates are the choices for the API keys of a person who leaves.
func KeyFates() []Option {
	return []Option{{Value: "revoke", Label: "revoke them"}, {Value: KeepKeys, Label: "let them go on sending requests"}}
}
