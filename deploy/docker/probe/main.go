// Command probe is the health check of images that have no shell: it asks one URL and exits 0 if the answer is 200.
//
//	probe http://127.0.0.1:8080/readyz
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// timeout is shorter than what Docker gives a health check in docker-compose.yml, so that the reason is told.
const timeout = 4 * time.Second

func main() { os.Exit(run(os.Args[1:], os.Stdout)) }

// run returns the exit code. What it prints is what `docker inspect` shows of the check.
func run(args []string, out io.Writer) int {
	if len(args) != 1 {
		fmt.Fprintln(out, "usage: probe URL")
		return 2
	}
	client := &http.Client{Timeout: timeout, Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true}}
	response, err := client.Get(args[0])
	if err != nil {
		fmt.Fprintln(out, err)
		return 1
	}
	defer response.Body.Close()
	_, _ = io.Copy(out, io.LimitReader(response.Body, 1024))
	if response.StatusCode != http.StatusOK {
		fmt.Fprintln(out, response.Status)
		return 1
	}
	return 0
}
