package postgres

import (
	"bytes"
	"embed"
	"strings"
	"sync"

	"github.com/oncepay/oncepay/payments"
)

//go:embed sql/*.sql
var files embed.FS

// query returns the named statement. A name that does not exist is a mistake that the first call shows.
func query(name string) string {
	text, ok := statements()[name]
	if !ok {
		panic("postgres: no SQL of the name " + name)
	}
	return text
}

var statements = sync.OnceValue(func() map[string]string {
	all := map[string]string{}
	entries, err := files.ReadDir("sql")
	if err != nil {
		panic(err) // the folder is part of the program
	}
	for _, e := range entries {
		text, err := files.ReadFile("sql/" + e.Name())
		if err != nil {
			panic(err)
		}
		all[strings.TrimSuffix(e.Name(), ".sql")] = fragments.Replace(string(text))
	}
	all[acceptNew] = strings.Replace(all["accept"], acceptConflict, "", 1)
	return all
})

func quoted(statuses []payments.Status) string {
	words := make([]string, len(statuses))
	for i, s := range statuses {
		words[i] = "'" + string(s) + "'"
	}
	return strings.Join(words, ", ")
}

// key names a payment inside the store.
type key struct {
	tenant string
	id     payments.ID
}

func (k key) compare(other key) int {
	if c := strings.Compare(k.tenant, other.tenant); c != 0 {
		return c
	}
	return bytes.Compare(k.id[:], other.id[:])
}

// keyArrays are the two arrays that every statement joins on.
func keyArrays(keys []key) (tenants []string, ids [][]byte) {
	tenants, ids = make([]string, len(keys)), make([][]byte, len(keys))
	for i := range keys { // a copy of each key would have to be allocated
		tenants[i], ids[i] = keys[i].tenant, keys[i].id[:]
	}
	return tenants, ids
}
