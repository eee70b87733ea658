package simtest

// Philly lists the GPUs of the tenants of Microsoft's Philly, as weights.
const Philly = `6214e9 2690
7f04ca 2568
11cb48 2666
b436b2 2600
ee9e8c 2690
e13805 2558
6c71a0 2670
2869ce 2558
ed69ec 1926
103959 1804
23dbec 88
0e4a51 2578
795a4c 36
51b7ef 544
925e2b 80
`
