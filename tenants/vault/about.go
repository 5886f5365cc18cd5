package vault

import "fmt"

// SealAbout returns a secret, sealed for what about names: beside anything else it
// does not open. It is for secrets that are no provider's.
func (v *Vault) SealAbout(about, secret string) ([]byte, error) {
	sealed, err := v.keys[0].Encrypt([]byte(secret), boundToName(about))
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return sealed, nil
}

// OpenAbout returns the secret that SealAbout sealed, and whether the first master key
// sealed it, or ErrSealedElsewhere.
func (v *Vault) OpenAbout(about string, sealed []byte) (secret string, newest bool, err error) {
	for i, master := range v.keys {
		if opened, err := master.Decrypt(sealed, boundToName(about)); err == nil {
			return string(opened), i == 0, nil
		}
	}
	return "", false, ErrSealedElsewhere
}

// ResealAbout returns a secret sealed as SealAbout does, and whether that was needed because
// an older master key had sealed it. It returns ErrSealedElsewhere.
func (v *Vault) ResealAbout(about string, sealed []byte) (resealed []byte, was bool, err error) {
	secret, newest, err := v.OpenAbout(about, sealed)
	if err != nil || newest {
		return sealed, false, err
	}
	resealed, err = v.SealAbout(about, secret)
	return resealed, err == nil, err
}

// boundToName is the associated data of a secret that is not a provider's. It begins
// unlike that of any that is.
func boundToName(about string) []byte { return []byte("about:" + about) }
