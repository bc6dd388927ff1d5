package subjects

import (
	"testing"
	"time"
)

// Bodies as the Go client sends them on the hot path.
const (
	benchAcquire = `{"name":"orders/4711","session":"q83vEjRWeJqrze8SNFZ4mqvN7xI0Vniaq83vEjRWeJqrze8SNFZ4mqvN7xI0Vnia",` +
		`"request":4711,"done":4709,"wait":"10s","ttl":"30s"}`
	benchRelease = `{"name":"orders/4711","session":"q83vEjRWeJqrze8SNFZ4mqvN7xI0Vniaq83vEjRWeJqrze8SNFZ4mqvN7xI0Vnia",` +
		`"request":4712,"done":4711,"key":"0123456789abcdef"}`
)

func benchGrant() *Grant {
	return &Grant{
		Name: "orders/4711", Key: 0x0123456789abcdef, Token: 1 << 40, Take: 1, TTL: 30 * time.Second, Lease: 10 * time.Second,
		Bucket: 17, Epoch: 3, Node: "NB3K5WQX", Ticket: 123456, Waited: 12 * time.Millisecond, Beat: 99, Durable: true,
		Receipt: "q83vEjRWeJqrze8SNFZ4mqvN7xI0Vniaq83vEjRWeJo",
	}
}

func BenchmarkDecodeAcquire(b *testing.B) {
	benchmarkDecode(b, OpAcquire, benchAcquire)
}

func BenchmarkDecodeRelease(b *testing.B) {
	benchmarkDecode(b, OpRelease, benchRelease)
}

func benchmarkDecode(b *testing.B, op Op, body string) {
	b.ReportAllocs()
	text := []byte(body)
	var r Request
	for b.Loop() {
		if refusal := r.Decode(op, text); refusal != nil {
			b.Fatal(refusal)
		}
	}
}

func BenchmarkDecodeRawName(b *testing.B) {
	b.ReportAllocs()
	name := []byte("orders/4711")
	headers := map[string][]string{"Oclocks-Ttl": {"30s"}, "Oclocks-Wait": {"10s"}}
	var r Request
	for b.Loop() {
		if refusal := r.DecodeSimple(OpAcquire, name, headers); refusal != nil {
			b.Fatal(refusal)
		}
	}
}

func BenchmarkEncodeGrant(b *testing.B) {
	b.ReportAllocs()
	g := benchGrant()
	buf := make([]byte, 0, 1024)
	for b.Loop() {
		buf = g.AppendJSON(buf[:0])
	}
}

func BenchmarkDecodeGrant(b *testing.B) {
	b.ReportAllocs()
	body := benchGrant().AppendJSON(nil)
	var g Grant
	for b.Loop() {
		if err := g.DecodeJSON(body); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEncodeAcquire(b *testing.B) {
	b.ReportAllocs()
	var r Request
	if refusal := r.Decode(OpAcquire, []byte(benchAcquire)); refusal != nil {
		b.Fatal(refusal)
	}
	buf := make([]byte, 0, 1024)
	for b.Loop() {
		buf = r.AppendJSON(buf[:0])
	}
}

func BenchmarkParseAddress(b *testing.B) {
	b.ReportAllocs()
	subject := HotSubject(17, OpAcquire, "UBTFKYG3DUXBH2ZQGDJQ6KJZ7YP5VHCB5ZKZQCQ7JZX6Y3D2Q6VQZK5A")
	for b.Loop() {
		if _, err := ParseAddress(subject); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBucketOf(b *testing.B) {
	for b.Loop() {
		BucketOf("orders/4711", 1024)
	}
}
