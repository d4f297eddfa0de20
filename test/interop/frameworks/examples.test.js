// One example for each framework that is installed here; for the others, ../agents.
import { runExamples } from "../../support/framework-examples.js";

runExamples("frameworks");
