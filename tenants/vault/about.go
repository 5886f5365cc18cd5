package vault

import "fmt"

// SealAbout returns a secret sealed and bound to the context about, so that it opens with the same context
// only. It is for secrets other than providers' ones.
func (v *Vault) SealAbout(about, secret string) ([]byte, error) {
	sealed, err := v.keys[0].Encrypt([]byte(secret), boundToName(about))
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return sealed, nil
}

// OpenAbout returns the secret that SealAbout sealed, and whether the first master key sealed it, or
// ErrSealedElsewhere.
func (v *Vault) OpenAbout(about string, sealed []byte) (secret string, newest bool, err error) {
	for i, master := range v.keys {
		if opened, err := master.Decrypt(sealed, boundToName(about)); err == nil {
			return string(opened), i == 0, nil
		}
	}
	return "", false, ErrSealedElsewhere
}

// ResealAbout returns a secret sealed as SealAbout does, and whether this was needed because an older master
// key had sealed it. It returns ErrSealedElsewhere.
func (v *Vault) ResealAbout(about string, sealed []byte) (resealed []byte, was bool, err error) {
	secret, newest, err := v.OpenAbout(about, sealed)
	if err != nil || newest {
		return sealed, false, err
	}
	resealed, err = v.SealAbout(about, secret)
	return resealed, err == nil, err
}

// boundToName is the associated data of secrets other than providers' ones. Its prefix differs from theirs.
func boundToName(about string) []byte { return []byte("about:" + about) }
