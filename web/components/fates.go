package components

// KeepKeys is the choice that leaves the API keys of a member who goes the scope proxy.
const KeepKeys = "keep"

// KeyFates are what can become of the API keys of someone who goes.
func KeyFates() []Option {
	return []Option{{Value: "revoke", Label: "revoke them"}, {Value: KeepKeys, Label: "let them go on sending requests"}}
}
