// Package policy_test holds the tests that the repository as a whole must pass: who may import
// whom, how long files are, what the docs say, what is deployed. They read the tree.
package policy_test

import "os"

// root is the repository's root, and repository what lies in it. The tests stay in their own folder:
// go test forgets what it remembers of them when a file changes that they have opened, and finds
// none where they have gone elsewhere.
const root = ".."

var repository = os.DirFS(root)
