// The report as one file: everything comes out of the file itself.
import { packed } from "./packed.js";
import { runPage } from "./run.js";

runPage(packed(document));
