package components

// PasskeyModel is a form that a passkey answers. When the button is pressed, static/js/passkeys.js has the
// browser ask for the passkey and sends the result as the field answer.
type PasskeyModel struct {
	Create     bool   // creates a passkey instead of using one
	Action     string // path that receives the answer
	Options    string // the browser's options as JSON; "" if they must be fetched
	OptionsURL string // path that returns them when the button is pressed
	Next       string // the destination afterwards
	Button     string
	Primary    bool
	Origin     string // the origin of the passkeys
	Instead    string // a sentence with the alternative without passkeys
}

// kind is the script's operation.
func (p PasskeyModel) kind() string {
	if p.Create {
		return "create"
	}
	return "get"
}
