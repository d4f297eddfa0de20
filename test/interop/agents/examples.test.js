// One example for each framework that is installed here; for the others, ../frameworks.
import { runExamples } from "../../support/framework-examples.js";

runExamples("agents");
