// Command fairlease-playground is the simulator as a page. Built for a browser (GOOS=js GOARCH=wasm) it is the program that the page's workers run;
// built for a host it writes the folder with the page: `make playground`.
package main
